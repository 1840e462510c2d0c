"""The state of a campaign, also while it runs."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from base.errors import EyelevelError
from base.files import lock_holder
from base.words import in_bytes, plural
from dataset.plan import Enough, never_enough, read_plan
from dataset.reasons import MANY_REJECTED
from dataset.run_files import ATTEMPT
from dataset.table import GIVEN_UP, GivenUp, Row, Run, read_given_up, read_rows, require_document
from measure.campaign.forecast import SPARE_BYTES, Forecast, Forecaster, RunModel
from measure.campaign.store import FolderStore
from measure.host.lanes import Lanes

# At most this many given-up sites are named.
NAMED_SITES = 3
# The lines of the table of rejections in addition to one per gate: heading, rule, blank lines, and the total of
# attempts.
TABLE_LINES = 6


@dataclass(frozen=True)
class Status:
    """The state of a campaign. `planned`, `done`, `given_up`: numbers of runs; `saved`: the number of runs that are not
    needed because the rule of `RUNS=auto` has decided. `open_runs`: the runs still to be made. `rows`: all attempts.
    `current`: the runs that are being made now. `running`: whether the campaign is being measured. `given_up_sites`:
    cells that get no more runs. `expected`: the forecast for the open runs, if known. `lanes`: the number of lanes of
    each machine."""

    planned: int
    done: int
    given_up: int
    saved: int
    open_runs: tuple[Run, ...]
    rows: tuple[Row, ...]
    current: tuple[str, ...]
    running: bool
    given_up_sites: tuple[GivenUp, ...]
    expected: Forecast | None
    lanes: Lanes


def status(folder: Path, enough: Enough = never_enough) -> Status:
    """The state of the campaign in `folder`; `enough` says which cells need no more runs. Raises EyelevelError when
    there is no campaign."""
    document = require_document(folder)
    repeats = document.settings.repeats
    rows = read_rows(folder)
    store = FolderStore(folder, rows)
    given_up_sites = read_given_up(folder)
    given_up_cells = {(one.site, one.network) for one in given_up_sites}
    blocks = read_plan(folder)
    planned, elsewhere = [run for block in blocks for run in block], store.made_elsewhere(blocks)
    unmeasured = [run for run in planned if not store.is_valid(run)]
    given_up = {
        run for run in unmeasured if store.is_given_up(run, repeats) or run.cell in given_up_cells or run in elsewhere
    }
    decided = frozenset(enough(folder))
    saved = {run for run in unmeasured if run not in given_up and run.cell in decided}
    open_runs = tuple(run for run in unmeasured if run not in given_up and run not in saved)
    lanes = Lanes(document.settings.lanes, at_once=document.settings.at_once)
    try:
        expected = Forecaster(rows, folder, RunModel.of(document), lanes.runs_at_once).forecast(open_runs)
    except EyelevelError:  # the document is of another version, or a site has no facts
        expected = None
    current = tuple(str(run) for run in open_runs if _being_made(store.run_folder(run, store.attempts(run) + 1)))
    return Status(
        planned=len(planned),
        done=len({row.of for row in rows if row.valid}),
        given_up=len(given_up),
        saved=len(saved),
        open_runs=open_runs,
        rows=tuple(rows),
        current=current,
        running=lock_holder(folder) is not None,
        given_up_sites=tuple(given_up_sites),
        expected=expected,
        lanes=lanes,
    )


def troubles(now: Status, folder: Path) -> list[str]:
    """The problems of the campaign in `folder`, whose state is `now`, with advice; one line each."""
    lines = [str(entry) for entry in now.given_up_sites[:NAMED_SITES]]
    if more := now.given_up_sites[NAMED_SITES:]:
        runs = plural("run", sum(one.runs for one in more))
        lines.append(f"{plural('more site', len(more))} given up, with {runs} ({GIVEN_UP})")
    rejected = Counter(row.gate for row in now.rows if not row.valid)
    if rejected.total() > MANY_REJECTED * len(now.rows):
        gate, count = rejected.most_common(1)[0]
        most = "" if count == rejected.total() else f"{count} by "
        lines.append(f"{rejected.total()} of {plural('attempt', len(now.rows))} rejected ({most}{gate})")
    free = shutil.disk_usage(folder).free
    if now.expected and now.expected.bytes + SPARE_BYTES > free:
        lines.append(f"the disk has {in_bytes(free)} free, and the open runs need {in_bytes(now.expected.bytes)}")
    if now.open_runs and not now.running:
        lines.append("it has open runs and is not running")
    return lines


def rejecting_gates(rows: Iterable[Row]) -> list[str]:
    """The gates that rejected any of `rows`, the most frequent first."""
    return [gate for gate, _ in Counter(row.gate for row in rows if not row.valid).most_common()]


def rejections(rows: Sequence[Row], gates: Sequence[str], width: int | None = None) -> Table:
    """The rejections by `gates`: a row for each gate, a column for all attempts and one for each protocol, separately
    in each browser if there are several. If the table is wider than `width`, the columns of browsers are merged; if it
    still is, the columns of protocols are left out. TABLE_LINES is the number of lines in addition to those of
    the gates."""
    several = len({row.browser for row in rows}) > 1
    splits: list[Callable[[Row], str]] = [lambda row: row.protocol]
    if several:
        splits.insert(0, lambda row: f"{row.protocol} {row.browser}")
    for split in splits:
        table = _rejections(rows, gates, split)
        if (
            width is None
            or Measurement.get(console := Console(width=10 * width, markup=False), console.options, table).maximum
            <= width
        ):
            return table
    return _rejections(rows, gates, None)


def _rejections(rows: Sequence[Row], gates: Sequence[str], split: Callable[[Row], str] | None) -> Table:
    """The table of rejections, with a column for all attempts and one for each value of `split`."""
    rejected = [row for row in rows if not row.valid]

    def column(row: Row) -> str:
        return split(row) if split else ""

    columns = list(dict.fromkeys(map(column, rows))) if split else []
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rejected by", no_wrap=True)
    for name in ("all", *columns):
        table.add_column(name, justify="right", no_wrap=True)
    for gate in gates:
        by_gate = Counter(column(row) for row in rejected if row.gate == gate)
        table.add_row(gate, str(by_gate.total()), *(str(by_gate[name] or "") for name in columns))
    attempts = Counter(map(column, rows))
    table.add_section()
    table.add_row("of attempts", str(len(rows)), *(str(attempts[name]) for name in columns))
    return table


def last_rejections(rows: Sequence[Row], gates: Sequence[str]) -> list[str]:
    """The last attempt that each of `gates` rejected, with its reason; one line each, since the table's columns are too
    narrow."""
    last = {row.gate: row for row in rows if not row.valid}
    return [
        f"last by {gate}: {row.of}: {row.reason.text if row.reason else ''}" for gate in gates for row in [last[gate]]
    ]


def _being_made(folder: Path) -> bool:
    return folder.exists() and not (folder / ATTEMPT).exists()
