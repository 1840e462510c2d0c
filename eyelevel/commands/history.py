"""`eyelevel history`: read many comparisons of `eyelevel ab`, and say whether B has become slower over the weeks."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click

from base.errors import EyelevelError, Misuse
from base.files import require_replaceable
from base.terminal import plain_table, print_json, print_line, terminal
from eyelevel.arguments import begin
from eyelevel.commands.compare import NOT_DECIDED_STATUS, WORSE_STATUS, status_in_words
from eyelevel.options import parameters_of


@click.command(params=parameters_of("history"))
def main(
    folder: Path,
    false_alarms: float,
    per_year: float,
    since: datetime | None,
    decide: bool,
    into: Path | None,
    as_json: bool,
) -> None:
    """Read the ab.json files in FOLDER and below, oldest first, and draw each metric on each network over time. An
    alarm says that B has become slower against A than it was: by more than such campaigns differ by themselves.

    An alarm takes about a dozen entries. It stays until --since begins the series anew.

    Exit status: 0 without an alarm; 1 if a file cannot be read, or there is none; 2 if an option is wrong; 3 with an
    alarm; 4 with --decide if a series is still too short for an alarm, or lacks its comparison's newest entry.

    Example: eyelevel history results
    """
    if not folder.is_dir():
        raise EyelevelError(f"there is no folder {folder}")
    if false_alarms >= per_year:
        raise Misuse("--false-alarms must be smaller than --per-year")
    into = into or folder / "history"
    require_replaceable(into, "--into names another folder")
    begin(f"reading the comparisons in {folder}")

    from analysis import history
    from analysis.report.history import INDEX, document, result, sparks, tables, titles, write
    from analysis.runs import records

    entries = history.read_entries(folder)
    series = history.history(entries, false_alarms, per_year, since and since.date())
    write(series, into)
    status = WORSE_STATUS if series.is_worse else NOT_DECIDED_STATUS if decide and not series.is_decided else 0
    if as_json:
        print_json(document(series))
        sys.exit(status)
    console = terminal()
    texts = records(tables(series)[0].texts)
    columns = ["entries", "latest", "scatter", "alarm"]
    for number, title in enumerate(titles(series), 1):
        table = plain_table(title=title)
        for column in ("network", "metric", "over time", *columns):
            table.add_column(column)
        for row, spark in zip(texts, sparks(series), strict=True):
            if row["comparison"] == str(number):
                table.add_row(row["network"], row["metric"], spark, *(row[column] for column in columns))
        console.print(table)
    for note in series.notes:
        print_line(console, f"{note}.")
    print_line(console, f"page: {into / INDEX}")
    print_line(console, f"result: {result(series)} ({status_in_words(status, 'history')})")
    sys.exit(status)
