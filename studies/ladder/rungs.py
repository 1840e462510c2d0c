"""The ladder from stock TCP to stock QUIC: each rung differs from the one below it in one thing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder: a protocol, and `change`, the one thing in which it differs from the rung below."""

    protocol: str
    change: str = ""


# All loads are first visits: the browser has no TLS session to resume. One rung adds that the browser knows which
# protocol each server speaks.
RUNGS = (
    Rung("tcp"),
    Rung("tcp-iw32", "initial window"),
    Rung("tcp-iw32-paced", "pacing"),
    Rung("tcp+", "buffers and idle restart"),
    Rung("tcp+lowat", "shorter send queue"),
    Rung("tcp+lowat+known", "servers known before"),
    Rung("tcp+level", "no backup connections"),
    Rung("quic+1con+2rtt", "the transport itself"),
    Rung("quic+1con", "one round trip less per connection"),
    Rung("quic+1con+urgency", "order of bytes"),
    Rung("quic", "gentler back-off"),
)
# Two conditions are measured on these neighbouring rungs, to split the difference between them. The rungs are TCP and
# QUIC with the same windows, the same round trips and, as far as these servers can, the same order of bytes.
BELOW, ABOVE = "tcp+level", "quic+1con+2rtt"
# The suffixes of these conditions, which follow the name of their network.
ARQ, SLOW = "+arq", "+slow"
# The third condition: the highest rung, in a browser that knows nothing of the servers.
HIGHEST, UNKNOWN = "quic", "quic+unknown"
# The names of the conditions in options.
CONDITIONS = ("arq", "slow", "unknown")


def base_network(name: str) -> str:
    """The network on which the condition `name` is based; any other name is returned unchanged."""
    return next((name.removesuffix(suffix) for suffix in (ARQ, SLOW) if name.endswith(suffix)), name)


def suffix_of(network: str) -> str:
    """The suffix of the network of a condition; empty for any other network."""
    return network.removeprefix(base_network(network))
