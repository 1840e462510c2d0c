"""Names of networks and protocols on the command line, checked before slow libraries are loaded."""

from measure.run.aliases import choose_protocols
from tuning import networks, protocols
from tuning.settings import choose

# The value of an option that takes names, when none is chosen.
NONE = "none"


def require_known_networks(names: str | None) -> None:
    """Raises EyelevelError where one of `names` is no network."""
    if names and names != NONE:
        choose("network", names, networks.load())


def require_known_protocols(names: str | None) -> None:
    """Raises EyelevelError where one of `names` is no protocol."""
    if names and names != NONE:
        choose_protocols(names, protocols.load())
