"""Checks the names of networks and protocols on the command line before slow libraries are loaded."""

from measure.run.aliases import choose_protocols
from tuning import networks, protocols
from tuning.settings import choose

# The value that chooses no names.
NONE = "none"


def require_known_networks(names: str | None) -> None:
    """Raise EyelevelError if one of `names` is not a network."""
    if names and names != NONE:
        choose("network", names, networks.load())


def require_known_protocols(names: str | None) -> None:
    """Raise EyelevelError if one of `names` is not a protocol."""
    if names and names != NONE:
        choose_protocols(names, protocols.load())
