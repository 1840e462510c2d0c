"""Process 1 of a recording: sets up its namespaces, loads the page in a browser, and stores the site.

Only `record.recorder.sandbox` starts it, in fresh namespaces.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from base.display import x_server
from base.errors import EyelevelError, reports_errors
from base.namespaces import hide_x_sockets, mount
from base.structure import from_json
from browsers.window import DESKTOP, MOBILE
from record.assemble import assemble
from record.intake import Intake
from record.recorder import programs
from record.recorder.proxy_output import read_exchanges
from record.recorder.spec import RecordSpec
from record.recorder.visit import LOAD_LIMIT_S, request, visit
from record.site import Recording, write_site

# Every Linux has a file system in memory here. A private one covers it, and ends with this process.
PRIVATE = Path("/dev/shm")


@reports_errors
def main(spec: RecordSpec) -> None:
    """Record `spec` and store the site. An older site of the same folder stays until then."""
    prepare_namespaces()
    try:
        write_site(record(spec), spec.folder)
    except EyelevelError as error:
        raise EyelevelError(f"{spec.folder.name} was not recorded: {error}") from None
    except KeyboardInterrupt:
        sys.exit(130)


def prepare_namespaces() -> None:
    """Mount private folders: what is written outside the site's folder ends with this process."""
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(PRIVATE))
    for folder in ("proxy", "browser", "exchanges", "x"):
        (PRIVATE / folder).mkdir()
    (PRIVATE / "proxy").chmod(0o700)
    hide_x_sockets(PRIVATE / "x")


def record(spec: RecordSpec) -> Recording:
    """Load the page in a browser; returns what came. Raises EyelevelError."""
    window = MOBILE if spec.mobile else DESKTOP
    with (
        x_server(window.screen, PRIVATE / "screen.log") as display,
        programs.proxy(spec, PRIVATE / "proxy", PRIVATE / "exchanges") as traffic,
        programs.browser(
            window,
            display,
            traffic.port(programs.START_LIMIT_S),
            PRIVATE / "proxy" / "mitmproxy-ca-cert.pem",
            PRIVATE / "browser",
            LOAD_LIMIT_S,
        ) as session,
    ):
        user_agent = visit(session, traffic, spec.url)
        if spec.also:
            request(session, traffic, spec.url, spec.also)
        # Read while the page is open: what a page sends when it is left is no part of its load.
        failures = traffic.failures()
        exchanges = read_exchanges(PRIVATE / "exchanges")
    recorder = {
        "tool": traffic.proxy,
        "browser": session.browser,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    intake = Intake(spec.url, keep_cookies=spec.keep_cookies)
    for exchange in exchanges:
        intake.take(f"{exchange.method} {exchange.url}", partial(lambda e: e, exchange))
    intake.skipped += failures
    recording = assemble(intake, recorder)
    return replace(
        recording,
        url=_start(recording, intake.exchanges[0].url),
        user_agent=user_agent,
        viewport=(window.width, window.height),
    )


def _start(recording: Recording, first_url: str) -> str:
    """The page that the visit began with. Its first request may have been for plain http."""
    secure = first_url.replace("http://", "https://", 1)
    return secure if secure in {exchange.url for exchange in recording.exchanges} else recording.url


if __name__ == "__main__":
    main(from_json(sys.argv[1], RecordSpec, "the recorder's arguments"))
