"""`plan.csv`: all runs of a campaign in the order in which to make them, one per line, by block.

It is written before the first run, and grows when sites, networks, protocols, browsers or runs are added.
"""

import csv
import io
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from pathlib import Path

from base.errors import EyelevelError
from base.files import write_atomically
from dataset.reading import read_text
from dataset.table import Cell, Run

PlannedBlock = tuple[Run, ...]
# Takes a campaign's folder; returns the cells (site and network) that need no more runs.
Enough = Callable[[Path], Collection[Cell]]

PLAN = "plan.csv"
COLUMNS = ("block", "site", "network", "protocol", "run", "browser")


def never_enough(folder: Path) -> Collection[Cell]:
    """No cell: all sites get all planned runs."""
    return ()


def read_plan(folder: Path) -> list[PlannedBlock]:
    """The planned blocks in the campaign's `folder`; empty if there is no plan yet. Raises EyelevelError."""
    path = folder / PLAN
    try:
        rows = csv.DictReader(io.StringIO(read_text(path)))
        runs = [
            (
                int(row["block"]),
                Run(row["site"], row["network"], row["protocol"], int(row["run"]), row["browser"]),
            )
            for row in rows
        ]
    except FileNotFoundError:
        return []
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise EyelevelError(f"{path} is broken: {error!r}") from None
    return [tuple(run for _, run in block) for _, block in groupby(runs, key=lambda entry: entry[0])]


def write_plan(folder: Path, blocks: Sequence[PlannedBlock]) -> None:
    """Write `blocks` to the plan, numbered from 1."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, block in enumerate(blocks, start=1):
        writer.writerows((number, run.site, run.network, run.protocol, run.number, run.browser) for run in block)
    write_atomically(folder / PLAN, text.getvalue())
