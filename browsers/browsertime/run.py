"""Running Browsertime once, and all that it starts."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from base.errors import EyelevelError
from base.places import tool
from base.processes import pinned

QUICK_STOP = Path(__file__).with_name("quick_stop.mjs")
QUICK_START = Path(__file__).with_name("quick_start.mjs")
# Browsertime does not ask earlier whether a page has finished; nor need it, where the page must be quiet for longer.
FIRST_ASKED_MS = 2000
# What Browsertime may need beyond the load itself: to start and stop the browser, to write its files.
OVERHEAD_S = 120
CONFIGURATION = "config.json"


def run_browsertime(
    target: str,
    configuration: Mapping[str, Any],
    environment: Mapping[str, str],
    film_cores: Collection[int],
    log: IO[bytes],
) -> int:
    """Have Browsertime load `target`, a URL or a script, and film it on `film_cores`; returns its exit status.

    What is in `environment` is added to ours; its output is appended to `log`. Raises EyelevelError when it does not
    end, which it must within the configuration's limit of a page load.
    """
    results = Path(configuration["resultDir"])
    (results / CONFIGURATION).write_text(json.dumps(configuration))
    preloaded = [QUICK_STOP, *([QUICK_START] if configuration["pageCompleteWaitTime"] < FIRST_ASKED_MS else [])]
    # Run by our Node: the script's first line would take whichever comes first in PATH.
    command: list[str | Path] = [tool("node")]
    for script in preloaded:
        command += ["--import", script]
    command += [tool("browsertime").resolve(), "--config", results / CONFIGURATION, target]
    path = f"{pinned_ffmpeg(results, film_cores)}:{os.environ['PATH']}"
    # What Node would compile into TMPDIR goes with it.
    environment = {**os.environ, "PATH": path, **environment, "NODE_DISABLE_COMPILE_CACHE": "1"}
    process = subprocess.Popen(command, cwd=results, env=environment, stdout=log, stderr=log, start_new_session=True)
    limit_s = configuration["timeouts"]["pageLoad"] / 1000 + OVERHEAD_S
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        raise EyelevelError(f"Browsertime did not end within {limit_s:.0f} s") from None
    finally:
        # Its whole session: the browser, its driver and ffmpeg do not end with Browsertime itself.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def pinned_ffmpeg(results: Path, cores: Collection[int]) -> Path:
    """A folder with an ffmpeg that runs on `cores`: Browsertime starts whichever comes first in PATH."""
    folder = results / "bin"
    folder.mkdir()
    script = folder / "ffmpeg"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(str(part) for part in [*pinned(cores), tool("ffmpeg")])} "$@"\n')
    script.chmod(0o755)
    return folder
