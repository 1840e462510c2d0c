"""Process 1 of a recording: makes its world, has the page loaded, and stores the site.

Started by `record.recorder.sandbox` alone, in fresh namespaces.
"""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from base.chromium import DESKTOP, MOBILE
from base.display import x_server
from base.errors import EyelevelError, reports_errors
from base.places import tool
from record.assemble import assemble
from record.intake import Intake
from record.recorder import programs
from record.recorder.capture import read_capture
from record.recorder.spec import RecordSpec
from record.recorder.visit import LOAD_LIMIT_S, ask_for, visit
from record.site import Recording, write_site

# A file system in memory that every Linux has. One of our own covers the machine's, and ends with us.
PRIVATE = Path("/dev/shm")
X_SOCKETS = Path("/tmp/.X11-unix")


@reports_errors
def main(spec: RecordSpec) -> None:
    """Record `spec` and store it; what was stored at its place before stays until then."""
    make_world()
    try:
        write_site(record(spec), spec.folder)
    except EyelevelError as error:
        raise EyelevelError(f"{spec.folder.name} was not recorded: {error}") from None
    except KeyboardInterrupt:
        sys.exit(130)


def make_world() -> None:
    """Set up the namespaces this process is in: what is written outside the site's folder ends with it."""
    _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(PRIVATE))
    for folder in ("proxy", "browser", "capture", "x"):
        (PRIVATE / folder).mkdir()
    (PRIVATE / "proxy").chmod(0o700)
    # Other X servers on this machine have sockets of the same names.
    X_SOCKETS.mkdir(mode=0o1777, exist_ok=True)
    (PRIVATE / "x").chmod(0o1777)
    _mount("--bind", str(PRIVATE / "x"), str(X_SOCKETS))


def record(spec: RecordSpec) -> Recording:
    """Have the page loaded; returns what came. Raises EyelevelError."""
    window = MOBILE if spec.mobile else DESKTOP
    with (
        x_server(window.screen, PRIVATE / "screen.log") as display,
        programs.proxy(spec, PRIVATE / "proxy", PRIVATE / "capture") as traffic,
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
            ask_for(session, traffic, spec.url, spec.also)
        # Now, and not after the browser has ended: what a page sends when it is left is no part of its load.
        failures = traffic.failures()
        captured = read_capture(PRIVATE / "capture")
    recorder = {
        "tool": traffic.proxy,
        "browser": session.browser,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    intake = Intake(spec.url, keep_cookies=spec.keep_cookies)
    for exchange in captured:
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
    """The page the visit began with, which may have been asked for over plain http."""
    secure = first_url.replace("http://", "https://", 1)
    return secure if secure in {exchange.url for exchange in recording.exchanges} else recording.url


def _mount(*arguments: str) -> None:
    done = subprocess.run([tool("mount"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EyelevelError(f"mount {' '.join(arguments)} failed: {done.stderr.strip()}")


if __name__ == "__main__":
    main(RecordSpec.loads(sys.argv[1]))
