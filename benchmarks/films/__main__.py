"""`python -m benchmarks.films`: what a film costs, with all that is kept of it, beside Browsertime's own script, which
computes its visual metrics alone."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click
import pandas as pd

from base.errors import EyelevelError, reports_errors
from base.places import tool
from benchmarks.films.material import make_film
from dataset.run_files import FILM
from films.decoding import decode
from measure.run.evidence import analyse_film

# The names of the films that are made.
NAMES = ("painting", "moving")


def ours(folder: Path) -> None:
    """Analyse the film in `folder` as a campaign does."""
    analyse_film(folder)


def by_script(folder: Path) -> None:
    """Let Browsertime's script, with the arguments that Browsertime gives it, compute the metrics of the film in
    `folder`."""
    script = tool("browsertime").resolve().parents[1] / "visualmetrics" / "visualmetrics-portable.py"
    command: list[str | Path] = [sys.executable, script, "--video", folder / FILM, "--orange", "--force"]
    command += ["--renderignore", "5", "--json"]
    environment = {**os.environ, "TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, env=environment, capture_output=True, check=True)


WAYS: dict[str, Callable[[Path], None]] = {"ours": ours, "script": by_script}


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """The wall-clock and the CPU time that `work` takes with all that it starts (s)."""
    started, used = time.monotonic(), _cpu_s()
    work()
    return time.monotonic() - started, _cpu_s() - used


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def all_at_once(work: Callable[[Path], None], folders: Sequence[Path]) -> None:
    """Do `work` for the films in `folders` on all cores, as after a block of runs."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        list(workers.map(work, folders))


def films_below(results: Path, count: int) -> list[Path]:
    """At most `count` of the films below `results`, evenly spread. Raises EyelevelError when there are none."""
    paths = sorted(results.rglob(FILM))
    if not paths:
        raise EyelevelError(f"there is no {FILM} below {results}")
    return paths[:: -(-len(paths) // count)]


def copies(films: Sequence[Path], folder: Path) -> list[Path]:
    """Folders in `folder`, each with a copy of one of the `films`."""
    folders = [folder / str(number) for number in range(1, len(films) + 1)]
    for film, copy in zip(films, folders, strict=True):
        copy.mkdir()
        shutil.copyfile(film, copy / FILM)
    return folders


def measure(folders: Sequence[Path], turns: int) -> tuple[pd.DataFrame, pd.Series]:
    """Costs of the films in `folders` (s): a row for each film alone, and, per film, all at once."""
    rows = []
    for folder in folders:
        times = decode(folder / FILM, {"blocks": lambda blocks: None})
        row: dict[str, float] = {"frames": len(times.times), "changes": len(times.changes)}
        for _ in range(turns):
            for name, work in WAYS.items():
                row[f"{name} s"], row[f"{name} CPU s"] = cost(partial(work, folder))
            rows.append({"film": folder.name, **row})
    alone = pd.DataFrame(rows).groupby("film", sort=False).mean()
    at_once = [
        {name: cost(partial(all_at_once, work, folders))[0] for name, work in WAYS.items()} for _ in range(turns)
    ]
    return alone, pd.DataFrame(at_once).mean() / len(folders)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("results", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--films", default=10, show_default=True, help="Of the films below RESULTS, at most so many.")
@click.option("--turns", default=3, show_default=True, help="How often each takes its turn.")
def main(results: Path | None, films: int, turns: int) -> None:
    """Print the seconds that a film takes, ours and Browsertime's script in turn: one film alone, and all at once.

    RESULTS is a folder with campaigns that kept their films. Without it films are made: of a page that paints in steps,
    and of one that never stops moving.

    Example: python -m benchmarks.films results --films 20
    """
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        folder = Path(temporary)
        paths = films_below(results, films) if results else [make_film(name, folder / name) for name in NAMES]
        alone, at_once = measure(copies(paths, folder), turns)
    click.echo(f"{alone.to_string(float_format='%.2f')}\n")
    means = alone.mean()
    for title, of_ours, of_script in (
        ("one alone", means["ours s"], means["script s"]),
        ("one alone, CPU time", means["ours CPU s"], means["script CPU s"]),
        (f"{len(paths)} at once", at_once["ours"], at_once["script"]),
    ):
        click.echo(f"{title}: {of_ours:.2f} s a film, the script {of_script:.2f} s: {100 * of_ours / of_script:.0f} %")


if __name__ == "__main__":
    reports_errors(main)()
