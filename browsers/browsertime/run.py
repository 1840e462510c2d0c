"""Runs Browsertime once, with all programs that it starts."""

import json
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from base.errors import EyelevelError
from base.jail import Jail, end_at_once, jailed
from base.places import tool
from base.processes import first_readable, pidfd, pinned
from browsers.contract import HOME

SCRIPTS = Path(__file__).parent
# The changes to Browsertime for every load. `navigation` must be loaded first: it replaces a method that others extend.
CHANGES = tuple(
    SCRIPTS / f"{name}.mjs" for name in ("navigation", "turn", "when_ready", "quiet", "page_scripts", "quick_stop")
)
CONFIGURATION = "config.json"
# How often the free space for the results is checked, and which share of the file system must be free, so that the
# space lasts until the next check. (A film of noise takes 94 MB a second.)
LOOK_S = 0.5
SPARE_SHARE = 1 / 8
# How long a browser may take until it shows an empty page, even on a busy machine.
READY_LIMIT_S = 120.0

# The messages over Browsertime's standard input, which is a socket (`turn.mjs`). Those that Browsertime sends are
# shorter than SIGN_BYTES.
SCREEN, BEGIN = b"screen\n", b"begin\n"
QUIET, OVER = b"quiet\n", b"over\n"
SIGN_BYTES = 64


@dataclass(frozen=True)
class Turn:
    """The callbacks of a load.

    `await_start` returns when the browser may start. `await_begin` is called when the browser shows an empty page. It
    returns when the load must begin. It also returns when its argument, a descriptor, becomes readable: then
    Browsertime has ended. It raises EyelevelError when the load is not wanted any more. `look` is called every LOOK_S
    or more often while the load is made, `say_quiet` when the page has been quiet for a while (`QUIET_SIGN_MS`), and
    `say_over` when the film has ended; nothing is measured after that.
    """

    await_start: Callable[[], None] = lambda: None
    await_begin: Callable[[int], None] = lambda _ended: None
    look: Callable[[], None] = lambda: None
    say_quiet: Callable[[], None] = lambda: None
    say_over: Callable[[], None] = lambda: None


def run_browsertime(
    target: str,
    configuration: Mapping[str, Any],
    environment: Mapping[str, str],
    changes: Collection[Path],
    readable: Collection[Path],
    x_sockets: Path,
    film_cores: Collection[int],
    limit_s: float,
    log: IO[bytes],
    await_screen: Callable[[], None],
    turn: Turn = Turn(),
) -> int:
    """Run Browsertime; it loads `target`, a URL or a script, when it is the load's `turn`. Returns its exit status.

    Browsertime loads its own modules at once, and starts the browser when `await_screen` has returned. The recorder
    films the load on `film_cores`.

    Browsertime and the browser run in a jail in which they can write only the results. `readable`: further files that
    they can read. `changes`: modules that change Browsertime, in addition to `CHANGES`. `x_sockets`: the folder with
    the display's socket. `environment`: variables that are added to our own; HOME and similar ones name folders below
    the results. The output is appended to `log`.

    Raises EyelevelError when the browser is not ready within READY_LIMIT_S, when the load has not ended `limit_s` after
    its beginning, when the file system of the results is almost full, or when the load is not wanted any more. The
    error's message also becomes the last line of the log.
    """
    results = Path(configuration["resultDir"])
    (results / CONFIGURATION).write_text(json.dumps(configuration))
    program = tool("browsertime-bundle").resolve()
    packages = next(folder for folder in reversed(program.parents) if folder.name == "node_modules")
    # Our own Node runs Browsertime. The first line of Browsertime's script would take the first Node in PATH.
    command: list[str | Path] = [tool("node")]
    for script in (*CHANGES, *changes):
        command += ["--import", script]
    command += [program, "--config", results / CONFIGURATION, target]
    variables = {
        "PATH": f"{film_recorder(results, film_cores)}:{os.environ['PATH']}",
        # Node would put its cache of compiled modules into TMPDIR, which is removed after the load.
        "NODE_DISABLE_COMPILE_CACHE": "1",
        **home_in(results),
        **environment,
    }
    files = (packages, SCRIPTS, tool("film-recorder"), *changes, *readable)
    jail = Jail(readable=files, writable=(results,), x_sockets=x_sockets, variables=tuple(variables))
    signs, standard_input = socket.socketpair()
    with standard_input:
        process = subprocess.Popen(
            jailed(jail, command),
            cwd=results,
            env={**os.environ, **variables},
            stdin=standard_input.fileno(),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        with signs, pidfd(process) as ended:
            await_screen()
            turn.await_start()
            _say(signs, SCREEN)
            _attend(ended, signs, turn, results, limit_s)
        return process.wait()
    except EyelevelError as fault:
        with suppress(OSError):  # there may be no space for it
            os.write(log.fileno(), f"{fault}\n".encode())
        raise
    finally:
        # This also ends the browser, its driver and the recorder, which may outlive Browsertime.
        end_at_once(process)


def _attend(ended: int, signs: socket.socket, turn: Turn, results: Path, limit_s: float) -> None:
    """Exchange messages with Browsertime through the socket `signs`, and let the load begin at its `turn`.

    Returns when Browsertime has ended, so that the descriptor `ended` can be read. Raises EyelevelError when
    Browsertime must be ended; the message says why.
    """
    descriptors, has_begun = [ended, signs.fileno()], False
    until_s = time.monotonic() + READY_LIMIT_S
    while (remaining_s := until_s - time.monotonic()) > 0:
        readable = first_readable(*descriptors, timeout_s=min(LOOK_S, remaining_s))
        space = os.statvfs(results)
        if space.f_bavail < SPARE_SHARE * space.f_blocks:
            size_mib = space.f_blocks * space.f_frsize >> 20
            raise EyelevelError(f"the load was ended since it filled the {size_mib} MiB that it may write")
        if readable == ended:
            return
        if has_begun:
            turn.look()
        if readable is None:
            continue
        try:
            spoken = signs.recv(SIGN_BYTES)
        except ConnectionResetError:  # it ended before it had read all
            spoken = b""
        if has_begun and QUIET in spoken:
            turn.say_quiet()
        if OVER in spoken or not spoken:
            descriptors = [ended]
            turn.say_over()
        elif not has_begun:
            turn.await_begin(ended)
            until_s, has_begun = time.monotonic() + limit_s, True
            _say(signs, BEGIN)
    late = f"it took longer than {limit_s:.0f} s" if has_begun else "its browser was not ready in time"
    raise EyelevelError(f"the load was ended since {late}")


def _say(signs: socket.socket, sign: bytes) -> None:
    with suppress(OSError):  # it has ended
        signs.sendall(sign)


def home_in(results: Path) -> dict[str, str]:
    """Create folders in `results` for the files that programs keep for themselves; returns the variables that name
    these folders."""
    home = results / HOME
    folders = {
        "HOME": home,
        "TMPDIR": results / "tmp",
        "XDG_RUNTIME_DIR": results / "runtime",
        "XDG_CACHE_HOME": home / ".cache",
        "XDG_CONFIG_HOME": home / ".config",
    }
    for folder in folders.values():
        folder.mkdir(0o700, parents=True, exist_ok=True)
    return {name: str(folder) for name, folder in folders.items()}


def film_recorder(results: Path, cores: Collection[int]) -> Path:
    """Create a folder with a program `ffmpeg` that is in fact the recorder, running on `cores`; returns the folder.

    Browsertime starts the first `ffmpeg` in PATH, so this folder must come first there.
    """
    folder = results / "bin"
    folder.mkdir()
    script = folder / "ffmpeg"
    command = shlex.join(str(part) for part in (*pinned(cores), tool("film-recorder"), "record"))
    script.write_text(f"""#!/bin/sh
# Browsertime's third argument is the size, and the last one is the film.
size=$3
while [ $# -gt 1 ]; do shift; done
exec {command} --size "$size" "$1"
""")
    script.chmod(0o755)
    return folder
