"""Films of pages that never stop moving: the processor time and the bytes that they take, which are bounded."""

from pathlib import Path
from statistics import median

from benchmarks.films.loads import FFMPEG, FFMPEG_FILM, NONE, RECORDER, load
from benchmarks.films.text import table
from dataset.run_files import FILM_LOG
from films.log import read_log

# The load ends when the page has moved for this long.
QUIET_MS = 8000
GOALS = "goal: 250 ms/s, 20 MB/s"


def bounds_table(folder: Path, loads: int) -> str:
    """A row for each page: the processor time, the bytes and the pictures of its film per second."""
    rows = []
    for site in ("window", "noise"):
        values: dict[str, list[float]] = {}
        for number in range(loads):
            loaded = {
                way: load(site, "dsl", way, folder / f"{site}-{way}-{number}", quiet_ms=QUIET_MS)
                for way in (NONE, RECORDER, FFMPEG)
            }
            log = read_log(loaded[RECORDER].folder / FILM_LOG)
            seconds = (log.ended_us - log.began_us) / 1e6
            for way in (RECORDER, FFMPEG):
                used_ms = loaded[way].film_ms - loaded[NONE].display_ms
                values.setdefault(f"{way} ms/s", []).append(used_ms / seconds)
            for way, name in ((RECORDER, FILM_LOG), (FFMPEG, FFMPEG_FILM)):
                size_bytes = (loaded[way].folder / name).stat().st_size
                values.setdefault(f"{way} MB/s", []).append(size_bytes / seconds / 1e6)
            values.setdefault("pictures/s", []).append(len(log.changes) / seconds)
        rows.append([site, *(f"{median(each):.0f}" for each in values.values())])
        names = list(values)
    return f"{table(['page', *names], rows)}\n{GOALS}"
