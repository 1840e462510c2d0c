"""`python -m measure.run.visit`: load a replayed site once in a fresh browser, and film it.

Runs as the client of a replay; it must never know whether the load will count. Leaves in its folder:

    film.mp4                 the screen, lossless, from some frames of orange before the navigation on
    browsertime.json         timings as the page tells them, and the browser's version and switches
    browsertime.har.gz       the page's requests, as the browser's developer tools tell them
    netlog.json.gz           all of the browser's requests, as its network stack tells them
    browsertime.log          what Browsertime and the X server said
    times.json               when (s since 1970) the visit, the X server and Browsertime began and ended
"""

import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

import click

from base.chromium import trust
from base.display import x_server
from base.errors import EyelevelError, reports_errors
from base.places import authority_certificate, tool
from base.processes import pinned
from measure.run.browser import NETLOG, QUIET_MS, browsertime_config, window
from record.site import Site
from tuning import protocols
from tuning.settings import choose_one

FILM = "film.mp4"
TIMINGS = "browsertime.json"
HAR = "browsertime.har.gz"
NETLOG_KEPT = f"{NETLOG}.gz"
LOG = "browsertime.log"
TIMES = "times.json"
CONFIG = "config.json"
RETURN_VISIT = Path(__file__).with_name("return_visit.mjs")
QUICK_STOP = Path(__file__).with_name("quick_stop.mjs")
QUICK_START = Path(__file__).with_name("quick_start.mjs")
# Before that, Browsertime does not ask whether a page has finished, and needs not where it must be quiet for longer.
FIRST_ASKED_MS = 2000

# What Browsertime may need beyond the load itself: to start and stop the browser, to write its files.
OVERHEAD_S = 120


def visit(
    site: Site,
    protocol: protocols.Protocol,
    limit_s: float,
    folder: Path,
    *,
    film: bool = True,
    film_cores: Collection[int] = (),
    quiet_ms: int = QUIET_MS,
) -> int:
    """Load `site` once and put what was recorded into `folder`; returns Browsertime's exit status.

    Filmed or not, and on `film_cores` if there are any; they are not those of the browser. The page has finished
    when it has asked for nothing for `quiet_ms`. Raises EyelevelError when the load could not be tried.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LOG).unlink(missing_ok=True)
    times = {"visit": time.time()}
    trust(authority_certificate(), Path.home())
    with tempfile.TemporaryDirectory(prefix="visit-") as temporary:
        results = Path(temporary)
        try:
            with x_server(window(site).screen, folder / LOG) as display, (folder / LOG).open("ab") as log:
                config = browsertime_config(site, protocol, limit_s, results, display, film, quiet_ms)
                (results / CONFIG).write_text(json.dumps(config))
                times["browsertime"] = time.time()
                path = f"{_pinned_ffmpeg(results, film_cores)}:{os.environ['PATH']}"
                told = {"DISPLAY": f":{display}", "PATH": path, "EYELEVEL_RETURN_URL": site.url}
                if protocol.fast_open:
                    told["LD_PRELOAD"] = str(tool("fast_open.so"))
                what = str(RETURN_VISIT) if protocol.early_data else site.url
                preloaded = [QUICK_STOP, *([QUICK_START] if quiet_ms < FIRST_ASKED_MS else [])]
                status = _browsertime(results, what, limit_s, told, preloaded, log)
                times["browsertime_end"] = time.time()
                return status
        finally:
            _keep(results, folder)
            (folder / TIMES).write_text(json.dumps({**times, "visit_end": time.time()}))


def _browsertime(
    results: Path, what: str, limit_s: float, told: Mapping[str, str], preloaded: Iterable[Path], log: IO[bytes]
) -> int:
    # Run by our own Node: the script's first line would take whichever comes first in PATH.
    command: list[str | Path] = [tool("node")]
    for script in preloaded:
        command += ["--import", script]
    command += [tool("browsertime").resolve(), "--config", results / CONFIG, what]
    # What Node would compile into TMPDIR goes with it.
    environment = {**os.environ, **told, "NODE_DISABLE_COMPILE_CACHE": "1"}
    process = subprocess.Popen(command, cwd=results, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        return process.wait(limit_s + OVERHEAD_S)
    except subprocess.TimeoutExpired:
        raise EyelevelError(f"Browsertime did not end within {limit_s + OVERHEAD_S:.0f} s") from None
    finally:
        # Its whole session: the browser, its driver and ffmpeg do not end with Browsertime itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _pinned_ffmpeg(results: Path, cores: Collection[int]) -> Path:
    """A folder with an ffmpeg that runs on `cores`: Browsertime starts whichever comes first in PATH."""
    folder = results / "bin"
    folder.mkdir()
    script = folder / "ffmpeg"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(str(part) for part in [*pinned(cores), tool("ffmpeg")])} "$@"\n')
    script.chmod(0o755)
    return folder


def _keep(results: Path, folder: Path) -> None:
    """Move what a load left in `results` to `folder`, whole or not: a failed load is told by what it left."""
    for name, kept in (("video/1.mp4", FILM), (TIMINGS, TIMINGS), (HAR, HAR)):
        if (results / name).exists():
            shutil.move(results / name, folder / kept)
    if (results / NETLOG).exists():
        with (results / NETLOG).open("rb") as plain, gzip.open(folder / NETLOG_KEPT, "wb", compresslevel=3) as packed:
            shutil.copyfileobj(plain, packed)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--site", "site_folder", required=True, type=click.Path(path_type=Path), help="The site's folder.")
@click.option("--proto", required=True, help="A protocol of tuning/protocols.toml.")
@click.option("--limit", "limit_s", type=float, default=300, show_default=True, help="Seconds a load may take.")
@click.option("--film/--no-film", default=True, show_default=True, help="Whether to film it.")
@click.option("--film-cores", default="", help="Processor cores for the film alone, separated by commas.")
@click.option("--quiet-ms", default=QUIET_MS, show_default=True, help="For how long the page must ask for nothing.")
@click.option("--into", "folder", required=True, type=click.Path(path_type=Path), help="Where to put the results.")
def main(
    site_folder: Path, proto: str, limit_s: float, film: bool, film_cores: str, quiet_ms: int, folder: Path
) -> None:
    """Load a site once, inside its replay.

    Example: eyelevel replay --site demo-news --net lte --proto quic -- \\
    python -m measure.run.visit --site sites/demo-news --proto quic --into /tmp/visit
    """
    protocol = choose_one("protocol", proto, protocols.load())
    cores = [int(core) for core in film_cores.split(",") if core]
    site = Site.load(site_folder)
    sys.exit(visit(site, protocol, limit_s, folder.resolve(), film=film, film_cores=cores, quiet_ms=quiet_ms))


if __name__ == "__main__":
    reports_errors(main)()
