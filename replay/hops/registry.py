"""The kinds of hops by name, and what can be loaded through them."""

from collections.abc import Iterable, Mapping
from functools import cache

from base.errors import EyelevelError
from base.registry import registered
from replay import hops
from replay.hops.contract import HopKind
from servers.registry import server_of
from tuning.hops import NONE
from tuning.networks import Network
from tuning.protocols import Protocol


@cache
def all_hops() -> Mapping[str, HopKind]:
    """Name → kind of hop."""
    return registered(hops, "HOP")


def hop_of(network: Network) -> HopKind:
    """The kind of the hop of `network`; without a hop, the kind that forwards every packet. Raises EyelevelError when
    there is no kind with this name."""
    known, name = all_hops(), network.hop.kind if network.hop else NONE
    if name not in known:
        raise EyelevelError(f"{network.name}: hop.kind must be one of {', '.join(known)}, not {name!r}")
    return known[name]


def proxy_of(network: Network) -> tuple[str, int] | None:
    """The host and port of the proxy that a browser on `network` uses; None without one."""
    return hop_of(network).proxy


def hop_programs(networks: Iterable[Network]) -> dict[str, str]:
    """The programs of the hops of `networks`, and those of servers that serve a hop with another protocol than the one
    under test: name → the option that prints the version."""
    programs: dict[str, str] = {}
    for network in networks:
        kind = hop_of(network)
        origin = kind.origin(network.hop) if network.hop else None
        programs |= {**kind.programs, **(server_of(origin).programs if origin else {})}
    return programs


def require_served_on(network: Network, protocol: Protocol) -> None:
    """Raises EyelevelError when the hop of `network` is not possible, when it cannot pass on the settings of
    `protocol`, or when the server of `protocol` cannot serve on `network`."""
    kind = hop_of(network)
    if network.hop and (fault := kind.refusal(network.hop)):
        raise EyelevelError(f"{network.name}: {fault}")
    if fault := kind.protocol_refusal(protocol):
        raise EyelevelError(f"{protocol.name}: the hop of {network.name} {fault}")
    if fault := server_of(protocol).network_refusal(protocol, network):
        raise EyelevelError(f"{protocol.name}: {fault}")
