"""A series of comparisons of the same two settings (`ab.json` of `analysis.ab`): has B become slower over the weeks?

One comparison's interval says what the same campaign would show again. It says nothing about another week: another
state of the machine, another build of a library. So the alarm knows nothing of these intervals. It compares each entry
with those before it, whose scatter has both in it (`analysis.statistics.cusum`). Every series (a metric on a network)
is tested, so each has its part of the declared false alarms.

Changes are shares: 0.1 is 10 % more time in B than in A.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics import cusum
from base.errors import EyelevelError
from base.files import read_json

# The file of an entry, and the version of its form that is read.
FILE, FORMAT = "ab.json", 1
CONFIDENCE = 0.95
# An entry with fewer pairs, as a share of the median of those before it, scatters otherwise than these.
LEAST_PAIRS = 0.5
WHERE = ["comparison", "network", "metric"]
ENTRIES = [*WHERE, "campaign", "begun_at", "blocks", "change", "low", "high", "worse", "sum"]
SERIES = [*WHERE, "entries", "latest", "scatter", "scatter_low", "scatter_high", "alarm", "alarm_at", "slower_since"]
SERIES += ["before", "since"]


@dataclass(frozen=True)
class Entry:
    """A comparison: the path of its document, when its campaign began, the document, and what it compares (`key`)."""

    path: Path
    begun_at: datetime
    document: Mapping[str, Any]
    key: str

    @property
    def sites(self) -> str:
        """The names of the sites."""
        return ", ".join(self.document["sites"])


@dataclass(frozen=True, eq=False)
class History:
    """All series in a folder.

    `comparisons`: an entry of each pair of settings and sites. `entries`: a row for each entry of each series
    (ENTRIES), oldest first; sum is that of the test. `series`: a row for each (SERIES): the latest change; the standard
    deviation of the entries before a rise, with its interval; whether the sum ever exceeded the `limit`, and when;
    since which entry B is slower, and the mean changes before it and since. `notes`: what was left out, in words.
    `false_alarms`, `per_year`: how many false alarms a year are declared, of so many entries a year.
    """

    comparisons: tuple[Entry, ...]
    entries: pd.DataFrame
    series: pd.DataFrame
    notes: tuple[str, ...]
    false_alarms: float
    per_year: float
    limit: float

    @property
    def is_worse(self) -> bool:
        """Whether any series has an alarm."""
        return bool(self.series["alarm"].any())

    @property
    def is_decided(self) -> bool:
        """Whether each series is long enough for an alarm."""
        return bool((self.series["entries"] > cusum.BASELINE).all())


def read_entries(folder: Path) -> list[Entry]:
    """The comparisons in `folder` and the folders in it, oldest first. Raises EyelevelError."""
    entries = [_entry(path) for path in sorted(folder.rglob(FILE))]
    if not entries:
        raise EyelevelError(f"{folder} has no {FILE}; 'eyelevel ab' writes one for each campaign")
    return sorted(entries, key=lambda entry: entry.begun_at)


def _entry(path: Path) -> Entry:
    document = read_json(path)
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}, not {FORMAT}")
        begun_at = datetime.fromisoformat(document["begun_at"])
        sides = [{name: document[side][name] for name in ("setting", "protocol", "browser")} for side in "ab"]
        # A build may be another one each week; recordings and the settings of protocols may not.
        sides += [{name: document[side][name] for name in ("protocol_settings", "sites")} for side in "ab"]
        key = json.dumps(sides, sort_keys=True)
        if not all(isinstance(name, str) for name in [*document["sites"], document["campaign"]]):
            raise TypeError
        for row in document["contrasts"]:
            numbers = [row[name] for name in ("change", "low", "high") if row[name] is not None]
            if not all(isinstance(number, int | float) and number > -1 for number in [*numbers, row["blocks"]]):
                raise TypeError
            if not (isinstance(row["metric"], str) and isinstance(document["networks"][row["network"]], dict)):
                raise TypeError
    except ValueError as fault:
        raise EyelevelError(f"{path} cannot be read: {fault}") from None
    except (KeyError, TypeError, AttributeError):
        raise EyelevelError(f"{path} is not a comparison that 'eyelevel ab' wrote; move it elsewhere") from None
    return Entry(path, begun_at if begun_at.tzinfo else begun_at.replace(tzinfo=UTC), document, key)


def history(entries: Sequence[Entry], false_alarms: float, per_year: float, since: date | None = None) -> History:
    """The series of `entries`, oldest first, from the day `since` on. Raises EyelevelError if there are none."""
    entries = [entry for entry in entries if since is None or entry.begun_at.date() >= since]
    notes = list[str]()
    kept: dict[tuple[str, datetime], Entry] = {}
    for entry in entries:
        first = kept.setdefault((entry.document["campaign"], entry.begun_at), entry)
        if first is not entry:
            notes.append(f"{entry.path} is the same campaign as {first.path}, and counts once")
    comparisons = {entry.key: entry for entry in reversed(kept.values())}
    keys = sorted(comparisons, key=lambda key: comparisons[key].begun_at)
    rows = [row for number, key in enumerate(keys, 1) for row in _rows(number, key, [*kept.values()], notes)]
    table = pd.DataFrame(rows, columns=ENTRIES)
    if table.empty:
        raise EyelevelError(f"no comparison{f' since {since}' if since else ''} has pairs that count")
    of_series = [rows for _, rows in table.groupby(WHERE, sort=False)]
    most = per_year * len(of_series) / false_alarms
    limit = cusum.limit(most)
    tested = [_tested(rows, limit) for rows in of_series]
    series = pd.DataFrame([row for _, row in tested], columns=SERIES)
    all_rows = pd.concat([rows for rows, _ in tested], ignore_index=True)
    first_entries = tuple(comparisons[key] for key in keys)
    return History(first_entries, all_rows, series, tuple(notes), false_alarms, per_year, limit)


def _rows(number: int, key: str, entries: Sequence[Entry], notes: list[str]) -> Iterator[list[Any]]:
    """The rows of the comparison `key`; appends to `notes` what does not fit in its series."""
    networks: dict[str, Any] = {}
    pairs: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        if entry.key != key:
            continue
        document, others, few = entry.document, set[str](), set[str]()
        for row in document["contrasts"]:
            network, metric, blocks = row["network"], row["metric"], row["blocks"]
            if row["change"] is None:
                continue
            if networks.setdefault(network, document["networks"][network]) != document["networks"][network]:
                others.add(network)
                continue
            before = pairs.setdefault((network, metric), [])
            if before and blocks < LEAST_PAIRS * np.median(before):
                few.add(network)
                continue
            before.append(blocks)
            interval = (np.nan if row[end] is None else row[end] for end in ("low", "high"))
            place = [number, network, metric, document["campaign"], entry.begun_at.isoformat()]
            yield [*place, blocks, row["change"], *interval, bool(row["worse"]), 0.0]
        for network in sorted(others):
            notes.append(f"{network} in {document['campaign']} has other settings than before, and is left out")
        for network in sorted(few):
            notes.append(f"{network} in {document['campaign']} has less than half as many pairs, and is left out")


def _tested(rows: pd.DataFrame, limit: float) -> tuple[pd.DataFrame, list[Any]]:
    """The rows of one series with the sums of its test, and its row of SERIES."""
    values = np.log1p(rows["change"].to_numpy(dtype=float))
    sums = cusum.sums(cusum.scores(values))
    beyond = np.flatnonzero(sums > limit)
    begin = len(values)
    if len(beyond):
        # The rise began after the sum was 0 for the last time.
        begin = int(np.flatnonzero(sums[: beyond[0]] == 0)[-1]) + 1
    scatter = [np.nan] * 3
    if begin > 1:
        squares, freedom = float(np.var(values[:begin]) * begin), begin - 1
        tails = stats.chi2.isf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], freedom)
        scatter = [*np.expm1(np.sqrt(squares / np.array([freedom, *tails])))]
    alarm = [False, None, None, np.nan, np.nan]
    if len(beyond):
        times = rows["begun_at"].to_numpy()
        means = np.expm1(values[:begin].mean()), np.expm1(values[begin:].mean())
        alarm = [True, times[beyond[0]], times[begin], *means]
    place = rows.iloc[0][WHERE]
    return rows.assign(sum=sums), [*place, len(values), rows["change"].iloc[-1], *scatter, *alarm]
