"""`eyelevel convert-trace`: convert published traces of networks into conditions files, or the reverse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError, Misuse
from base.files import write_file
from base.text import printable
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from tuning import converting


@click.command(params=parameters_of("convert-trace"))
def main(from_: Path, into: Path, heavy: Path | None, **columns: str | None) -> None:
    """Convert FROM into a conditions file: the rate, delay and loss of one direction of a network over time.

    FROM is a delivery trace of Mahimahi, a light trace of CellReplay (with --heavy), or a log: a table whose columns
    are named here, each with its unit if that is not ours: --rate "throughput:kbit/s". A conditions file is converted
    into a delivery trace. docs/networks.md describes conditions files, and how a network follows one.

    Example: eyelevel convert-trace log.csv --time timestamp:ms --rate down_kbps:kbit/s --rtt rtt --into down.csv
    """
    from tuning import converting

    chosen = {what: converting.parse_column(what, text) for what, text in columns.items() if text}
    text, notes = _converted(from_, into, heavy, chosen)
    write_file(into, text)
    for note in (*notes, f"written: {into}"):
        click.echo(printable(note), err=True)
    click.echo("to measure with it, name it in your networks.toml (docs/networks.md#your-own-network)", err=True)


def _converted(
    from_: Path, into: Path, heavy: Path | None, columns: dict[str, converting.Column]
) -> tuple[str, list[str]]:
    """The text of the file, and notes for the user. Raises EyelevelError."""
    from tuning import converting

    if columns and heavy:
        raise Misuse("--heavy is for CellReplay's traces, names of columns are for logs: use one of them")
    if into.suffix != ".csv":
        if columns or heavy or not converting.has_columns(from_):
            raise EyelevelError(f"{into} must end with .csv; only a conditions file becomes a delivery trace")
        return converting.delivery_trace_text(from_), []
    if heavy:
        converted = converting.from_cellreplay(from_, heavy)
    elif columns:
        if "time" not in columns or len(columns) < 2 or {"rtt", "delay"} <= columns.keys():
            raise Misuse("for a log, give --time and at least one of --rate, --rtt or --delay (not both), and --loss")
        converted = converting.from_log(from_, columns)
    else:
        converted = converting.from_delivery_trace(from_)
    notes = list(converted.notes)
    if converted.min_rtt_ms is not None:
        notes.append(f"delays exclude the minimum: set the network's min_rtt_ms = {converted.min_rtt_ms:.4g}")
    return converting.text_of(converted, from_.name), notes
