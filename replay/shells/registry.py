"""The kinds of shells by name."""

from collections.abc import Iterable, Mapping
from functools import cache

from base.errors import EyelevelError
from base.registry import registered
from replay import shells
from replay.shells.contract import Shells
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network


@cache
def all_shells() -> Mapping[str, Shells]:
    """Name → kind of shells."""
    return registered(shells, "SHELLS")


def shells_named(name: str) -> Shells:
    """The shells with this name. Raises EyelevelError when there are none."""
    known = all_shells()
    if name not in known:
        raise EyelevelError(f"there are no shells {name!r}; there are {', '.join(known)}")
    return known[name]


def require_emulated(name: str, networks: Iterable[Network], *, delayed_servers: bool = False) -> None:
    """Raises EyelevelError when the shells with this name are not installed, or cannot emulate one of `networks`, or
    cannot delay single servers although `delayed_servers`."""
    chosen = shells_named(name)
    if delayed_servers and not chosen.delays_servers:
        raise EyelevelError(
            f"the shells {name} cannot delay single servers (--server-rtts, SERVER_RTTS); leave that out, or take "
            f"SHELLS={DEFAULT_SHELLS}"
        )
    chosen.require()
    for network in networks:
        if refusal := chosen.refusal(network):
            raise EyelevelError(refusal)
