"""The runs that `RUNS=auto` saved in a campaign."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.text import listing, span
from base.words import in_words
from dataset.durations import mean_seconds, pace_seconds
from dataset.plan import read_plan
from dataset.table import Cell, read_given_up, read_rows, require_document


@dataclass(frozen=True)
class Saving:
    """The runs that the rule saved.

    `runs`: how many planned runs were unnecessary; `seconds`: how long they would have taken. `made_runs`: how many
    runs were made; `made_s`: how long they took. `ends`: network that ended → the fewest and the most runs of one of
    its settings. Times are the elapsed times with all lanes in parallel.
    """

    runs: int
    seconds: float
    made_runs: int
    made_s: float
    ends: Mapping[str, tuple[int, int]]


def saving(folder: Path, decided: Collection[Cell]) -> Saving:
    """The runs that the rule saved in the campaign in `folder`, whose `decided` cells need no more runs. All zero if
    there is no plan. Raises EyelevelError."""
    planned = [run for block in read_plan(folder) for run in block]
    if not planned:
        return Saving(0, 0.0, 0, 0.0, {})
    rows = read_rows(folder)
    attempted = {row.of for row in rows}
    given_up = {(entry.site, entry.network) for entry in read_given_up(folder)}
    saved = [run for run in planned if run.cell in decided and run.cell not in given_up and run not in attempted]
    settings = require_document(folder).settings
    run_s = mean_seconds(rows)
    saved_s = sum(run_s[run.cell] / settings.runs_at_once(run.network) for run in saved) + pace_seconds(saved)
    numbers: dict[Cell, set[int]] = {}
    for run in attempted:
        numbers.setdefault(run.cell, set()).add(run.number)
    ends: dict[str, list[int]] = {}
    for cell in dict.fromkeys(run.cell for run in saved):
        ends.setdefault(cell[1], []).append(len(numbers.get(cell, ())))
    return Saving(
        len(saved),
        saved_s,
        len(attempted),
        sum(row.seconds / settings.runs_at_once(row.network) for row in rows),
        {network: (min(counts), max(counts)) for network, counts in ends.items()},
    )


def saved_line(saving: Saving) -> str:
    """A sentence about `saving` for the report's reader."""
    if not saving.runs:
        return "RUNS=auto has saved nothing: no network was decided before its last run"
    total, total_s = saving.runs + saving.made_runs, saving.seconds + saving.made_s
    ends = listing(
        [f"{network} after {span(*numbers)} runs of each setting" for network, numbers in saving.ends.items()]
    )
    return (
        f"RUNS=auto saved {saving.runs} of {total} runs ({100 * saving.runs / total:.0f} %), about "
        f"{in_words(saving.seconds)} of {in_words(total_s)}: {ends}"
    )
