"""The cost of the analysis of a film, and of Browsertime's script."""

import resource
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.films.agreement import script_metrics
from benchmarks.films.loads import RECORDER, load
from benchmarks.films.text import table
from dataset.run_files import FILM
from films.playable import make_playable
from measure.run.evidence import analyse_film

SITES = {"demo-news": None, "spinner": 4000}


def analysis_table(folder: Path, turns: int) -> str:
    """A row for each page: the seconds and the processor time that three things take: the analysis of the film's log,
    making the playable film, and Browsertime's script on the playable film."""
    rows = []
    for site, quiet_ms in SITES.items():
        one = load(site, "dsl", RECORDER, folder / site, quiet_ms=quiet_ms)
        kept = folder / f"{site}-kept"
        shutil.copytree(one.folder, kept)
        playing = _cost(partial(make_playable, kept, small=False))
        ours = [_cost(partial(analyse_film, one.folder)) for _ in range(turns)]
        script = [_cost(partial(script_metrics, kept / FILM)) for _ in range(turns)]
        values = [tuple(map(median, zip(*each, strict=True))) for each in (ours, [playing], script)]
        rows.append([site, f"{one.counts['pictures']:.0f}", *(f"{wall:.2f} / {used:.2f}" for wall, used in values)])
    return table(["page", "pictures", "analysis s / CPU s", "playable film", "the script"], rows)


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """The wall-clock time and the processor time (s) that `work` takes, with all processes that it starts."""
    started, used = time.monotonic(), _cpu_s()
    work()
    return time.monotonic() - started, _cpu_s() - used


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
