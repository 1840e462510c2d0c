"""Process 1 of a recording: sets up its namespaces, loads the page in a browser, and stores the site.

Only `record.recorder.sandbox` starts it, in fresh namespaces, and passes what to record on standard input.
"""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from base.display import KEYBOARD_MAPS, x_server
from base.errors import EyelevelError, reports_errors
from base.jail import Jail
from base.namespaces import mount_memory
from base.structure import from_json
from browsers.window import DESKTOP, MOBILE
from record.assemble import assemble
from record.intake import Intake
from record.recorder import programs
from record.recorder.filled_values import filled_in
from record.recorder.limits import BROWSER_BYTES, OVERHEAD_BYTES, RECORDING_BYTES
from record.recorder.proxy_output import read_connections, read_exchanges
from record.recorder.spec import RecordSpec
from record.recorder.visit import LOAD_LIMIT_S, request, visit
from record.site import Recording, write_site

# Every Linux has a file system in memory here. A private one is mounted over it, and ends with this process.
PRIVATE = Path("/dev/shm")
# The folders in it, with their sizes in bytes. The browser cannot use up the space that the proxy needs.
FOLDERS = {
    "browser": BROWSER_BYTES,
    "exchanges": RECORDING_BYTES + OVERHEAD_BYTES,
    "proxy": OVERHEAD_BYTES,
    "x": OVERHEAD_BYTES,
}


@reports_errors
def main(spec: RecordSpec) -> None:
    """Record `spec` and store the site. An older site in the same folder stays until the new one is stored."""
    prepare_namespaces()
    try:
        write_site(record(spec), spec.folder)
    except EyelevelError as error:
        raise EyelevelError(f"{spec.folder.name} was not recorded: {error}") from None
    except KeyboardInterrupt:
        sys.exit(130)


def prepare_namespaces() -> None:
    """Mount private folders: files outside the site's folder vanish with this process."""
    mount_memory(PRIVATE, f"mode=755,size={OVERHEAD_BYTES}")
    for name, size in FOLDERS.items():
        (PRIVATE / name).mkdir()
        mount_memory(PRIVATE / name, f"mode=700,size={size}")
    mount_memory(KEYBOARD_MAPS, f"size={OVERHEAD_BYTES}")


def record(spec: RecordSpec) -> Recording:
    """Load the page in a browser; returns what was recorded. Raises EyelevelError."""
    window = MOBILE if spec.mobile else DESKTOP
    screen_jail = Jail(writable=(PRIVATE / "x", KEYBOARD_MAPS), x_sockets=PRIVATE / "x")
    with (
        programs.proxy(spec, PRIVATE / "proxy", PRIVATE / "exchanges") as traffic,
        x_server(window.screen, PRIVATE / "screen.log", screen_jail) as await_screen,
    ):
        await_screen()
        port, ca = traffic.port(programs.START_LIMIT_S), PRIVATE / "proxy" / "mitmproxy-ca-cert.pem"
        scripted = spec.page_script is not None
        with programs.browser(
            window, port, ca, PRIVATE / "browser", PRIVATE / "x", LOAD_LIMIT_S, scripted=scripted
        ) as session:
            user_agent = visit(session, traffic, spec.url, spec.page_script, spec.values)
            if spec.also:
                request(session, traffic, spec.url, spec.also)
            # Read while the page is open: requests that a page sends when it is closed are not part of its load.
            failures = traffic.failures()
            intake = Intake(spec.url, keep_cookies=spec.keep_cookies)
            for exchange in read_exchanges(PRIVATE / "exchanges"):
                if name := filled_in(exchange, spec.values):
                    what = f"{exchange.method} {exchange.url.partition('?')[0]}"
                    intake.leave_out(what, f"it has the value of {name}, which is not kept")
                else:
                    intake.take(f"{exchange.method} {exchange.url}", partial(lambda e: e, exchange))
            for connection in read_connections(PRIVATE / "exchanges"):
                intake.connect(connection)
    recorder = {
        "tool": traffic.proxy,
        "browser": session.browser,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for what, why in failures:
        intake.leave_out(what, why)
    recording = assemble(intake, recorder)
    return replace(
        recording,
        url=_start(recording, intake.exchanges[0].url),
        user_agent=user_agent,
        viewport=(window.width, window.height),
        page_script=spec.page_script,
    )


def _start(recording: Recording, first_url: str) -> str:
    """The page with which the visit began. Its first request may have been plain http."""
    secure = first_url.replace("http://", "https://", 1)
    return secure if secure in {exchange.url for exchange in recording.exchanges} else recording.url


if __name__ == "__main__":
    main(from_json(sys.stdin.read(), RecordSpec, "the recorder's arguments"))
