"""`eyelevel waterfall`: draw the requests of one run, or of two side by side, over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from base.errors import EyelevelError, Misuse
from base.files import replacing_folder, require_writable
from base.ownership import give_to_caller
from base.text import unknown
from eyelevel.arguments import begin, campaign_folder
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    import pandas as pd

    from analysis.report.waterfalls.loads import Load

WATERFALLS, PAGE = "waterfalls", "index.html"


@click.command(params=parameters_of("waterfall"))
def main(
    campaign: str,
    site: str | None,
    net: str | None,
    proto: str | None,
    run: str | None,
    against: str | None,
    metric: str | None,
    threshold: float | None,
) -> None:
    """Write a waterfall of CAMPAIGN (a folder in results/, or a path) into its folder waterfalls/: a page, and the HAR
    of each run.

    \b
    Examples:
      eyelevel waterfall try --site demo-light --net geo --proto tcp+,quic
      eyelevel waterfall before --against after --site shop --net lte --proto quic
    """
    if (run is None) == (proto is None):
        raise Misuse("name either --proto (median runs) or --run, as in: --proto tcp+,quic")
    if run is not None and metric:
        raise Misuse("--metric selects among a protocol's runs, and --run names them: use one of these")
    names = [name.strip() for name in (run or proto or "").split(",")]
    if len(names) > 2 or not all(names):
        raise Misuse(f"a waterfall shows one run or two, not {run or proto!r}")
    folders = [campaign_folder(name) for name in ([campaign, against] if against else [campaign])]
    begin(f"reading {', '.join(map(str, folders))}")

    from analysis.report.waterfalls.loads import read_load
    from analysis.report.waterfalls.page import folder_name, write_waterfall
    from analysis.runs import load

    # A single campaign contributes all runs of the waterfall; each of two campaigns contributes one.
    places = [(folders[0], name) for name in names]
    if against:
        places = [(folders[0], names[0]), (folders[1], names[-1])]
    tables = {folder: load(folder).runs for folder in folders}
    loads = []
    for folder, name in places:
        row, why = _chosen(folder, tables[folder], site, net, name, metric, is_run=run is not None)
        loads.append(_with_largest_paint(read_load(folder, row, why)))
    into = folders[0] / WATERFALLS / folder_name(loads)
    require_writable(into.parent, "copy the campaign to a folder of yours")
    into.parent.mkdir(exist_ok=True)
    with replacing_folder(into, PAGE) as new:
        write_waterfall(loads, new, threshold)
    give_to_caller(into.parent)
    click.echo(into / PAGE)


def _with_largest_paint(load: Load) -> Load:
    """`load` with its largest paint, if the evidence has it."""
    from browsers.registry import browser_of
    from dataset.run_files import TIMINGS, is_of_runs
    from measure.run.evidence import UNUSABLE, read_evidence

    files = (load.folder / name for name in (TIMINGS, browser_of(load.folder).network_log))
    if not all(is_of_runs(file, load.campaign) for file in files):
        return load
    try:
        largest = read_evidence(load.folder, filmed=False).largest
    except (OSError, *UNUSABLE):
        return load
    return replace(load, largest=asdict(largest)) if largest else load


def _chosen(
    folder: Path, runs: pd.DataFrame, site: str | None, net: str | None, name: str, metric: str | None, *, is_run: bool
) -> tuple[Mapping[str, Any], str]:
    """The row of the chosen run among the `runs` of the campaign in `folder`, and why it was chosen.

    `name` is the run's name, or the name of a protocol, whose median run is chosen. Raises EyelevelError.
    """
    from analysis.report.waterfalls.loads import median_run, named_run

    for column, value in (("site", site), ("network", net)):
        runs = _narrowed(runs, column, value, must_be_one=not is_run)
    if is_run:
        return named_run(runs, name)
    first = runs.iloc[0]
    return median_run(runs, first["site"], first["network"], name, metric, folder)


def _narrowed(runs: pd.DataFrame, column: str, value: str | None, *, must_be_one: bool) -> pd.DataFrame:
    """The rows of `runs` with `value` in `column`; all rows if `value` is None.

    Raises EyelevelError if there is no such row, or if the rows have several values and `must_be_one`.
    """
    there = list(dict.fromkeys(runs[column]))
    if value and value not in there:
        raise EyelevelError(f"{unknown(column, value, there)} in the campaign")
    if not value and must_be_one and len(there) != 1:
        option = "--net" if column == "network" else f"--{column}"
        raise EyelevelError(f"name one {column} with {option}; the campaign has {', '.join(there) or 'none'}")
    return runs[runs[column] == value] if value else runs
