"""`python -m measure.live.visit`: load a recorded page from the web itself once, in a fresh browser, and film it.

Only `measure.live.loads` starts it, in fresh namespaces (except for the network), and passes what to load on standard
input. Its folder then has the same files as that of a load in a replay (`measure.run.visit`), without those of the
servers and the emulated network.
"""

import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path

from base.display import DISPLAY, KEYBOARD_MAPS, x_server
from base.errors import reports_errors
from base.files import write_json
from base.jail import Jail
from base.namespaces import mount_memory
from base.structure import from_json
from browsers.browsertime.configuration import QUIET_MS, READINESS, configuration
from browsers.browsertime.run import run_browsertime
from browsers.registry import browser_named
from dataset.run_files import HAR, LOG, TIMES, TIMINGS
from measure.run.browser import page_of
from measure.run.turn import turn_of_visit
from measure.run.visit import LATE_S, keep, keep_film
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER

# The recorder uses the same browser.
BROWSER = DEFAULT_BROWSER
# The time limit of a page.
LIMIT_S = 120.0
# Every Linux has a file system in memory here. A private one is mounted over it, and ends with this process.
PRIVATE = Path("/dev/shm")
PRIVATE_BYTES = 2 << 30
KEYBOARD_BYTES = 1 << 20


@dataclass(frozen=True)
class LiveVisit:
    """One live load of the site in the folder `site`; its files are written to `folder`. The page has finished when it
    has requested nothing for `quiet_ms`. `origin_ca`: a certificate authority that is trusted in addition to the public
    ones."""

    site: Path
    folder: Path
    quiet_ms: int = QUIET_MS
    origin_ca: Path | None = None


def live_addresses(site: Site) -> Mapping[str, str]:
    """Host → the address of the server from which it was recorded. Hosts without a known server are left out."""
    addresses = {}
    for host, servers in site.addresses.items():
        with suppress(ValueError):
            addresses[host] = str(ip_address(site.recorded_ips[servers[0]]))
    return addresses


def visit(spec: LiveVisit) -> int:
    """Make the load that `spec` describes; returns Browsertime's exit status. Raises EyelevelError."""
    site, browser = Site.load(spec.site), browser_named(BROWSER)
    page = page_of(site)
    times: dict[str, float | None] = {"visit": time.time()}
    turn = turn_of_visit(times, is_prompted=False)
    with tempfile.TemporaryDirectory(prefix="live-", dir=PRIVATE, ignore_cleanup_errors=True) as temporary:
        results, x_sockets = Path(temporary) / "results", Path(temporary) / "x"
        results.mkdir()
        x_sockets.mkdir()
        screen_jail = Jail(writable=(x_sockets, KEYBOARD_MAPS), x_sockets=x_sockets)
        if spec.origin_ca:
            browser.trust(spec.origin_ca, results)
        try:
            with x_server(page.window.screen, results / LOG, screen_jail) as screen, (results / LOG).open("ab") as log:
                config = configuration(page, results, DISPLAY, LIMIT_S, spec.quiet_ms, film=True)
                config |= browser.live_options(page, live_addresses(site), results)
                return run_browsertime(
                    site.url,
                    config,
                    {"DISPLAY": f":{DISPLAY}"},
                    browser.changes,
                    browser.readable(),
                    x_sockets,
                    (),
                    LIMIT_S + LATE_S,
                    log,
                    screen,
                    turn,
                )
        finally:
            keep_film(results, spec.folder)
            keep(results, spec.folder, {TIMINGS: TIMINGS, HAR: HAR, READINESS: READINESS}, browser)
            write_json(spec.folder / TIMES, {**times, "visit_end": time.time()})


@reports_errors
def main(spec: LiveVisit) -> None:
    """Set up the namespaces of this process, and load the page; exits with Browsertime's status."""
    mount_memory(PRIVATE, f"mode=755,size={PRIVATE_BYTES}")
    mount_memory(KEYBOARD_MAPS, f"mode=755,size={KEYBOARD_BYTES}")
    sys.exit(visit(replace(spec, folder=spec.folder.resolve())))


if __name__ == "__main__":
    main(from_json(sys.stdin.read(), LiveVisit, "the specification of the live load"))
