"""`python -m measure.run.visit SPEC`: load a replayed site once in a fresh browser, and film it.

This is the client of a replay; it must never know whether the load will count. SPEC is a `VisitSpec`, as
`VisitSpec.command` passes it. The visit leaves these files in its folder:

    film.changes             the film: each change of the screen, from the orange before the navigation on (`films.log`)
    navigation.json          when the page was navigated to, by its own clock (ms since 1970)
    browsertime.json         the page's timings, and the browser's version and switches
    browsertime.har.gz       the page's requests, as the browser's developer tools show them
    <browser's network log>  all of the browser's requests, as its network stack logs them (`Browser.network_log`)
    <instruments' files>     those of the instruments that accompany a visit (`measure.instruments`)
    browsertime.log          the output of Browsertime and of the X server
    readiness.json           before the navigation: how long it took until the browser was idle, and the film had begun
    times.json               when (s since 1970) the visit and Browsertime began and ended, when the browser started and
                             was ready, when the load began, how idle the processors were then, when the first paint
                             was seen, and when the page had been quiet for a while (`measure.run.turn`)
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from base.display import DISPLAY, KEYBOARD_MAPS, x_server
from base.errors import EyelevelError, reports_errors
from base.jail import Jail, file_in, opened_in
from base.places import ca_certificate, tool
from base.portable import from_argument
from base.processes import leave
from browsers.browsertime.configuration import READINESS, configuration
from browsers.browsertime.run import run_browsertime
from browsers.contract import Browser
from browsers.registry import browser_named
from dataset.run_files import FILM_LOG, HAR, LOG, NAVIGATION, TIMES, TIMINGS
from films.log import has_changes
from measure.instruments.contract import instruments
from measure.run.browser import page_of, refusal
from measure.run.turn import turn_of_visit
from measure.run.visit_spec import VisitSpec
from record.site import Site
from tuning.devices import device_of

# Where Browsertime's results have the film, and where they have it while it is being made.
RECORDED, UNDER_WAY = "video/1.mp4", "x11-tmp.mp4"

# A film has its first paint when it has this many changes: the orange, the blank page that follows, and the paint.
CHANGES_UNTIL_PAINTED = 3

# How long Browsertime may take in addition to the load itself: to start and stop the browser, and to write its files.
LATE_S = 30
# Films are copied in pieces of at most this size.
PIECE_BYTES = 1 << 20
# Whoever captures packets sets this variable to the file that gets the browser's TLS keys, in NSS's format. The browser
# itself writes them to its results (KEY_LOG); from there they are copied.
KEY_LOG_VARIABLE = "SSLKEYLOGFILE"
KEY_LOG = "keys.log"


def visit(spec: VisitSpec) -> int:
    """Make the load that `spec` describes; returns Browsertime's exit status.

    Raises EyelevelError when the load could not even be attempted.
    """
    site, browser, folder = Site.load(spec.site), browser_named(spec.browser), spec.folder.resolve()
    device = device_of(spec.browser)
    if spec.cores:
        os.sched_setaffinity(0, spec.cores)
    folder.mkdir(exist_ok=True)  # without its parents: if the campaign's folder has been removed, this must fail
    (folder / LOG).unlink(missing_ok=True)
    times: dict[str, float | None] = {"visit": time.time()}
    if fault := refusal(browser, spec.protocol, site, device, spec.proxy):
        raise EyelevelError(fault)
    page = page_of(site, device, spec.proxy)
    # A page may have made the folder impossible to remove. The folder is removed with the replay at the latest.
    with tempfile.TemporaryDirectory(prefix="visit-", ignore_cleanup_errors=True) as temporary:
        results, x_sockets = Path(temporary) / "results", Path(temporary) / "x"
        results.mkdir()
        x_sockets.mkdir()
        turn = turn_of_visit(
            times,
            is_prompted=spec.awaits_turn,
            latest_s=spec.idle_s,
            has_painted=lambda: has_painted(results),
        )
        # The X server may write keyboard maps, since the replay has its own folder for them (`replay.world`).
        screen_jail = Jail(writable=(x_sockets, KEYBOARD_MAPS), x_sockets=x_sockets)
        files = {TIMINGS: TIMINGS, HAR: HAR, READINESS: READINESS}
        browser.trust(ca_certificate(), results)

        def say_over() -> None:
            times["over"] = time.time()
            keep_film(results, folder)
            turn.say_over()

        try:
            with x_server(page.window.screen, results / LOG, screen_jail) as screen, (results / LOG).open("ab") as log:
                config = configuration(page, results, DISPLAY, spec.limit_s, spec.quiet_ms, film=spec.film)
                config |= browser.browsertime_options(page, spec.protocol, spec.connection_options, results)
                environment = {"DISPLAY": f":{DISPLAY}", "EYELEVEL_RETURN_URL": site.url}
                readable = browser.readable()
                readable += [browser.return_visit] if browser.return_visit else []
                if KEY_LOG_VARIABLE in os.environ:
                    environment[KEY_LOG_VARIABLE] = str(results / KEY_LOG)
                if spec.protocol.fast_open:
                    environment["LD_PRELOAD"] = str(tool("fast_open.so"))
                    readable.append(tool("fast_open.so"))
                target = str(browser.return_visit) if spec.protocol.early_data else site.url
                # With early data, the load is a return visit, and the first visit also takes its time.
                limit_s = spec.limit_s * (2 if spec.protocol.early_data else 1) + LATE_S
                times["browsertime"] = time.time()
                try:
                    with ExitStack() as around:
                        for instrument in instruments():
                            around.enter_context(instrument.around_visit(folder))
                        return run_browsertime(
                            target,
                            config,
                            environment,
                            browser.changes,
                            readable,
                            x_sockets,
                            spec.film_cores,
                            limit_s,
                            log,
                            screen,
                            replace(turn, say_over=say_over),
                        )
                except EyelevelError:
                    del files[TIMINGS]  # a load that had to be ended does not count, however far it had got
                    raise
                finally:
                    times["browsertime_end"] = time.time()
        finally:
            if "over" not in times:
                keep_film(results, folder)
            keep(results, folder, files, browser)
            (folder / TIMES).write_text(json.dumps({**times, "visit_end": time.time()}))


def has_painted(results: Path) -> bool:
    """Whether the film that is being made in `results` shows the page's first paint."""
    if not (file := opened_in(results, UNDER_WAY)):
        return False
    with file:
        return has_changes(file, CHANGES_UNTIL_PAINTED)


def keep_film(results: Path, folder: Path) -> None:
    """Copy two files to `folder`: the film, if there is one, and the times of the navigation. This is done while the
    browser still runs, so that the film can be analysed while the browser ends."""
    space = os.statvfs(results)
    for source, target in ((NAVIGATION, NAVIGATION), (RECORDED, FILM_LOG)):
        if file := opened_in(results, source):
            with file, (folder / target).open("wb") as kept:
                # Copy only the bytes that the file has now, and no more than its file system can hold: if a page has
                # taken over the browser, it may still be writing.
                rest_bytes = min(os.fstat(file.fileno()).st_size, space.f_blocks * space.f_frsize)
                while piece := file.read(min(rest_bytes, PIECE_BYTES)):
                    kept.write(piece)
                    rest_bytes -= len(piece)


def keep(results: Path, folder: Path, files: Mapping[str, str], browser: Browser) -> None:
    """Copy the files of a load from `results` to `folder`, complete or not: they also show why a load failed.

    `files`: the name of a file in `results` → its name in `folder`. Logs are copied as well. The browser's programs
    have ended, but a stranger's page may have manipulated the files that they left.
    """
    for source, target in files.items():
        if file := file_in(results, source):
            shutil.copyfile(file, folder / target)
    for source, path in ((LOG, folder / LOG), (KEY_LOG, Path(os.environ.get(KEY_LOG_VARIABLE, os.devnull)))):
        if file := file_in(results, source):
            with file.open("rb") as content, path.open("ab") as kept:
                shutil.copyfileobj(content, kept)
    browser.keep_network_log(results, folder)


@reports_errors
def main(spec: str) -> None:
    """Load a site once, inside its replay; exits with Browsertime's status."""
    leave(visit(from_argument(spec)))


if __name__ == "__main__":
    main(sys.argv[1])
