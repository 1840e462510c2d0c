"""Completes sites before they are measured, for commands that take a page from its recording to a result."""

from pathlib import Path

from browsers.browsertime.configuration import QUIET_MS
from eyelevel.defaults import CLOSE_LOADS, CLOSE_NETWORK, CLOSE_PROTOCOLS
from measure.completing.completing import OUR_RECORDER, Completing, complete
from measure.host.exclusive import measuring_alone
from measure.run.aliases import choose_protocols
from measure.run.setting import Loading
from measure.sites.completeness import Completeness
from record.edit import is_variant
from record.recorder.addresses import AddressPolicy
from record.site import Site
from tuning import networks, protocols
from tuning.settings import choose_one

# The time of a load on two cores in addition to the page's own time and the quiet time (s); and the time of all loads
# that complete a site whose page takes 5 s.
LOAD_S = 4.0
COMPLETING_S = 2 * CLOSE_LOADS * (LOAD_S + QUIET_MS / 1000 + 5)


def complete_now(
    site: Site, origin_ca: Path | None = None, *, allow_private: bool = False, fetch: bool = True
) -> Completeness:
    """Complete `site` as `eyelevel close` does without options.

    Missing exchanges are fetched if the site is our own recording and if they may be added to it (`fetch`). Raises
    EyelevelError.
    """
    network, over = (
        choose_one("network", CLOSE_NETWORK, networks.load()),
        choose_protocols(CLOSE_PROTOCOLS, protocols.load()),
    )
    completing = Completing(
        CLOSE_LOADS,
        network,
        {protocol.name: protocol for protocol in over},
        Loading(filmed=False, quiet_ms=QUIET_MS),
        origin_ca,
        AddressPolicy.ALL if allow_private else AddressPolicy.PUBLIC,
    )
    ours = OUR_RECORDER in site.recorder.get("tool", "") and not is_variant(site)
    with measuring_alone():
        return complete(site, completing, fetch=fetch and ours)
