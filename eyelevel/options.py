"""Options that several commands take, and what they mean."""

import click

from measure.run.aliases import choose_protocols
from replay.shells.registry import all_shells
from tuning import networks, protocols
from tuning.defaults import DEFAULT_SHELLS, OFF, RECORDED
from tuning.settings import choose

# In place of names, where nothing is meant.
NONE = "none"

keep_cookies = click.option(
    "--keep-cookies",
    is_flag=True,
    help="Keep the values of cookies that servers set, and their header fields with credentials, which some pages' "
    "scripts need. Without it cookies get stand-ins of the same length, and such fields are taken off. URLs and bodies "
    "stay as they were sent in either case: hand on only pages that were seen without login.",
)
allow_private = click.option(
    "--allow-private",
    is_flag=True,
    help="Let pages reach addresses that are not public, too: this machine's and those of local networks. Without it "
    "'eyelevel record' lets a page reach those of its own kind (a page on this machine others on it), 'eyelevel close' "
    "none.",
)

SHELLS_HELP = (
    f"The shells that emulate networks ({DEFAULT_SHELLS}); mahimahi: those of upstream Mahimahi, which 'make setup "
    "SHELLS=mahimahi' installs (docs/mahimahi.md)."
)
shells_option = click.option(
    "--shells", type=click.Choice(list(all_shells())), default=DEFAULT_SHELLS, help=SHELLS_HELP
)

SERVER_RTTS_HELP = (
    "How far beyond the network each server is: off; recorded, by as much as its round trip was longer than that to "
    "the nearest one; recorded-12ms, than 12 ms; or as a file says (docs/distant-servers.md)."
)
server_rtts_option = click.option("--server-rtts", default=OFF, show_default=True, help=SERVER_RTTS_HELP)
OFF_OR_RECORDED = (OFF, RECORDED)
THINK_TIME_HELP = "How long servers take to answer: off, no time; or as long as the recorded ones took."
CERTIFICATES_HELP = "Chains of certificates: off, one short certificate each; or as long as the recorded ones."
certificates_option = click.option(
    "--certificates", type=click.Choice(OFF_OR_RECORDED), default=OFF, show_default=True, help=CERTIFICATES_HELP
)
ALPN_HELP = (
    "What servers speak over TCP: off, HTTP/2; or HTTP/1.1 alone where only that was recorded. Over QUIC it is HTTP/3."
)
alpn_option = click.option("--alpn", type=click.Choice(OFF_OR_RECORDED), default=OFF, show_default=True, help=ALPN_HELP)
think_time_option = click.option(
    "--think-time", type=click.Choice(OFF_OR_RECORDED), default=OFF, show_default=True, help=THINK_TIME_HELP
)

AUTO = "auto"
LANES_HELP = (
    "How many blocks are measured at once, each on cores of its own (1); auto: as many as do not disturb each other, "
    "which is measured before (docs/lanes.md)."
)

BUDGET_HELP = (
    "How long all may take (90s, 60m, 2h15m): no block begins that is not expected to end by then, and the same "
    "command goes on."
)

INSECURE_HELP = (
    "Take tcp:// beyond this machine, too: whoever reaches the cluster can run programs as you on all of it."
)
insecure = click.option("--insecure", is_flag=True, help=INSECURE_HELP)


def require_known_networks(names: str | None) -> None:
    """Raises EyelevelError where one of `names` is no network; before libraries are loaded that take a second."""
    if names and names != NONE:
        choose("network", names, networks.load())


def require_known_protocols(names: str | None) -> None:
    """Raises EyelevelError where one of `names` is no protocol; before libraries are loaded that take a second."""
    if names and names != NONE:
        choose_protocols(names, protocols.load())
