"""`python -m benchmarks.films.visit WAY SCRIPT SPEC`: make a visit whose load is filmed in one of `loads.WAYS`.

At the end, the script in the file SCRIPT runs in the page, unless SCRIPT is empty. The visit also stores the processor
times of FFmpeg and of the X server from their start to their end.
"""

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from base.display import x_server
from base.places import tool
from benchmarks.films.loads import BOTH, COSTS, FFMPEG, FFMPEG_FILM, RECORDER
from browsers.browsertime import run as browsertime
from browsers.browsertime.run import run_browsertime
from measure.run import visit
from measure.run.visit import keep_film

# The program that Browsertime starts as FFmpeg. Its last argument is the film. The second line of `times` is the
# processor time of the shell's children.
SCRIPT = """#!/bin/sh
size=$3
left=$#
while [ "$left" -gt 1 ]; do
  set -- "$@" "$1"
  shift
  left=$((left - 1))
done
film=$1
shift
{start}
status=$?
times > "{results}/times"
exit $status
"""
# How the film is made in each way. FFmpeg needs its rate a second time, before the film's name: otherwise it would
# guess the film's rate from the first frames.
STARTS = {
    RECORDER: '{recorder} record --size "$size" "$film"',
    FFMPEG: '{ffmpeg} "$@" -r 30 "{results}/{film}" && : > "$film"',
    BOTH: """mkfifo "{results}/q"
exec 3<> "{results}/q"
{recorder} record --size "$size" "$film" <&3 2> /dev/null &
{ffmpeg} "$@" -r 30 "{results}/{film}"
kill -TERM $!
wait $!""",
}


def main(way: str, script: str, spec: str) -> None:
    """Make the visit; exits with its status."""
    costs: dict[str, float] = {"ffmpeg_ms": 0.0, "display_ms": 0.0}
    keep, serve, load = keep_film, x_server, run_browsertime

    def recorder_of(results: Path, _cores: Collection[int]) -> Path:
        folder = results / "bin"
        folder.mkdir()
        if way in STARTS:
            words = {
                "recorder": tool("film-recorder"),
                "ffmpeg": tool("ffmpeg"),
                "film": FFMPEG_FILM,
                "results": results,
            }
            (folder / "ffmpeg").write_text(SCRIPT.format(start=STARTS[way].format(**words), results=results))
            (folder / "ffmpeg").chmod(0o755)
        return folder

    @contextmanager
    def counted_server(*arguments: Any) -> Iterator[Any]:
        with serve(*arguments) as screen:
            try:
                yield screen
            finally:
                costs["display_ms"] = _run_ms("Xvfb")

    def load_asked(target: str, configuration: Mapping[str, Any], *rest: Any) -> int:
        if not script:
            return load(target, configuration, *rest)
        environment, changes, readable, *others = rest
        readable = [*readable, Path(script)]
        return load(target, {**configuration, "script": script}, environment, changes, readable, *others)

    def keep_both(results: Path, folder: Path) -> None:
        keep(results, folder)
        for name in (FFMPEG_FILM, "times"):
            if (results / name).exists():
                (folder / name).write_bytes((results / name).read_bytes())
        costs["ffmpeg_ms"] = _children_ms(folder / "times") if way == FFMPEG else 0.0

    changes: dict[str, Any] = {"x_server": counted_server, "run_browsertime": load_asked, "keep_film": keep_both}
    try:
        with patch.object(browsertime, "film_recorder", recorder_of), patch.dict(vars(visit), changes):
            visit.main(spec)
    finally:
        (Path(json.loads(spec)["folder"]) / COSTS).write_text(json.dumps(costs))


def _run_ms(program: str) -> float:
    """How long the threads of `program` have run so far (ms)."""
    threads = [
        thread
        for process in Path("/proc").iterdir()
        if process.name.isdigit() and (process / "comm").read_text().strip() == program
        for thread in (process / "task").iterdir()
    ]
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


def _children_ms(times: Path) -> float:
    """The processor time (ms) of a shell's children. `times` is a file with the output of the shell's command of that
    name (POSIX, section 2.15)."""
    total_s = 0.0
    for time in times.read_text().splitlines()[1].split():
        minutes, _, seconds = time.rstrip("s").partition("m")
        total_s += 60 * float(minutes) + float(seconds)
    return 1000 * total_s


if __name__ == "__main__":
    main(*sys.argv[1:])
