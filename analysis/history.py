"""A series of comparisons of the same two settings (`ab.json` of `analysis.ab`): has B become slower over the weeks?

One comparison's interval says what the same campaign would show again. It says nothing about another week: another
state of the machine, another build of a library. So the alarm knows nothing of these intervals. It compares each entry
with those before it, whose scatter has both in it (`analysis.statistics.cusum`). Every series (a metric on a network)
of a comparison is tested, so each has its part of the comparison's declared false alarms.

Changes are shares: 0.1 is 10 % more time in B than in A.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics import cusum
from analysis.statistics.samples import Array
from analysis.text import label, listing
from base.errors import EyelevelError
from base.files import read_json

# The file of an entry, and the version of its form that is read.
FILE, FORMAT = "ab.json", 1
CONFIDENCE = 0.95
# Independent entries correlate so strongly with those before them that this module warns, with at most this
# probability in each series.
CORRELATED_P = 0.01
# No page takes so many times as long; sums and powers of larger numbers overflow.
MOST_CHANGE = 1e9
# The parts of what an entry compares (`Entry.key`).
PARTS = ("networks", "loading", "machine", "recordings", "A", "B")
WHERE = ["comparison", "network", "metric"]
ENTRIES = [*WHERE, "campaign", "begun_at", "blocks", "change", "low", "high", "worse", "sum"]
SERIES = [*WHERE, "entries", "least_entries", "has_newest", "latest", "scatter", "scatter_low", "scatter_high"]
SERIES += ["correlation", "limit", "alarm", "alarm_at", "slower_since", "before", "since"]


@dataclass(frozen=True)
class Entry:
    """A comparison: the path of its document, when its campaign began, the document, and what it compares: `key` has
    each of PARTS as text."""

    path: Path
    begun_at: datetime
    document: Mapping[str, Any]
    key: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class History:
    """All series in a folder.

    `comparisons`: the newest entry of each, those that began first first. `entries`: a row for each entry of each
    series (ENTRIES), oldest first; sum is that of the test. `series`: a row for each (SERIES): how many entries an
    alarm takes at least; whether it has the comparison's newest entry; the latest change; the standard deviation of the
    entries before a rise, with its interval, and the correlation of neighbours; whether the sum ever exceeded the
    limit, and when; since which entry B is slower, and the mean changes before it, and from it to the alarm. `notes`:
    what a reader must know of the entries, in words. `false_alarms`, `per_year`: how many false alarms a year each
    comparison has, as declared, of so many entries a year.
    """

    comparisons: tuple[Entry, ...]
    entries: pd.DataFrame
    series: pd.DataFrame
    notes: tuple[str, ...]
    false_alarms: float
    per_year: float

    @property
    def is_worse(self) -> bool:
        """Whether any series has an alarm."""
        return bool(self.series["alarm"].any())

    @property
    def is_decided(self) -> bool:
        """Whether each comparison has series, and each of them its newest entry and enough entries for an alarm."""
        is_long = self.series["entries"] >= self.series["least_entries"]
        return not self.without_series and bool((is_long & self.series["has_newest"]).all())

    @property
    def without_series(self) -> list[int]:
        """The numbers of the comparisons in which no pair counts."""
        return sorted({*range(1, len(self.comparisons) + 1)} - {*self.series["comparison"]})


def read_entries(folder: Path) -> list[Entry]:
    """The comparisons in `folder` and the folders in it, oldest first. Raises EyelevelError."""

    def refuse(fault: OSError) -> None:
        # A campaign that is measured meanwhile removes folders.
        if not isinstance(fault, FileNotFoundError):
            raise EyelevelError(f"{fault.filename} cannot be read: {fault.strerror}; name the folder of the campaigns")

    # Unlike with Path.rglob, a folder that cannot be read is an error.
    places = [Path(place) for place, _, files in os.walk(folder, onerror=refuse) if FILE in files]
    entries = [_entry(place / FILE) for place in sorted(places)]
    if not entries:
        raise EyelevelError(f"{folder} has no {FILE}; 'eyelevel ab' writes one for each campaign")
    return sorted(entries, key=lambda entry: entry.begun_at)


def _entry(path: Path) -> Entry:
    document = read_json(path)
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"its format is {document['format']!r}, not {FORMAT}")
        begun_at = datetime.fromisoformat(document["begun_at"])
        key = _key(document)
        names = [*document["sites"], document["campaign"], *(document[side]["setting"] for side in "ab")]
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        if len({(row["network"], row["metric"]) for row in document["contrasts"]}) < len(document["contrasts"]):
            raise ValueError("it has a metric on a network twice")
        for row in document["contrasts"]:
            if not (isinstance(row["metric"], str) and isinstance(document["networks"][row["network"]], dict)):
                raise TypeError
            if not (isinstance(row["worse"], bool) and type(row["blocks"]) is int and 0 <= row["blocks"] < MOST_CHANGE):
                raise TypeError
            if row["change"] is not None and not -1 < _number(row["change"]) < MOST_CHANGE:
                raise TypeError
            if any(row[end] is not None and not _number(row[end]) >= -1 for end in ("low", "high")):
                raise TypeError
    except ValueError as fault:
        raise EyelevelError(f"{path} cannot be read: {fault}") from None
    except (KeyError, TypeError, AttributeError, OverflowError):
        raise EyelevelError(f"{path} is not a comparison that 'eyelevel ab' wrote; move it elsewhere") from None
    return Entry(path, begun_at if begun_at.tzinfo else begun_at.replace(tzinfo=UTC), document, key)


def _key(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Each of PARTS of what the `document` compares. A build may be another one each week, and so may its path;
    networks, recordings, the settings of protocols and loads, and the machine may not."""
    sides = []
    for side in (document["a"], document["b"]):
        settings = {**side["protocol_settings"]}
        settings |= {"program": [word for word in settings.get("program") or [] if "/" not in word]}
        sides.append({"settings": settings, **{name: side[name] for name in ("protocol", "browser")}})
    machine = {name: document["machine"].get(name) for name in ("host", "cpu", "cpus")}
    recordings = {side: document[side]["sites"] for side in "ab"}
    parts = (document["networks"], document.get("loading", {}), machine, recordings, *sides)
    return tuple(json.dumps(_given(part), sort_keys=True) for part in parts)


def _given(value: Any) -> Any:
    """`value` without the keys that are off or have no value, which other versions may not know."""
    if isinstance(value, dict):
        return {name: given for name, inner in value.items() if (given := _given(inner))}
    return value


def _number(value: Any) -> float:
    """`value` if it is a finite number. Raises TypeError and OverflowError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(float(value)):
        raise TypeError
    return float(value)


def history(entries: Sequence[Entry], false_alarms: float, per_year: float, since: date | None = None) -> History:
    """The series of `entries`, oldest first, from the day `since` on. Raises EyelevelError if there are none."""
    entries = [entry for entry in entries if since is None or entry.begun_at.date() >= since]
    notes = list[str]()
    kept: dict[tuple[str, datetime], Entry] = {}
    for entry in entries:
        first = kept.setdefault((entry.document["campaign"], entry.begun_at), entry)
        if first is not entry:
            notes.append(f"{entry.path} is the same campaign as {first.path}, and counts once")
    # The newest entry of each, in the order of the oldest ones.
    comparisons = {entry.key: entry for entry in kept.values()}
    keys = [*comparisons]
    for number, (before, key) in enumerate(pairwise(keys), 2):
        differing = [name for name, one, other in zip(PARTS, before, key, strict=True) if one != other]
        notes.append(f"Comparison {number} is another one than {number - 1}: it differs in {listing(differing)}")
    rows = [row for entry in kept.values() for row in _rows(keys.index(entry.key) + 1, entry)]
    table = pd.DataFrame(rows, columns=ENTRIES)
    if table.empty:
        raise EyelevelError(f"no comparison{f' since {since}' if since else ''} has pairs that count")
    table = table.sort_values("comparison", kind="stable")
    newest = [comparisons[key].begun_at.isoformat() for key in keys]
    tested = []
    for number, of_comparison in table.groupby("comparison"):
        parts = of_comparison.groupby(WHERE, sort=False)
        # Bonferroni: each series has its part of the false alarms.
        limit = cusum.limit(per_year * len(parts) / false_alarms)
        tested += [_tested(rows, limit, newest[int(number) - 1], notes) for _, rows in parts]
    series = pd.DataFrame([row for _, row in tested], columns=SERIES)
    all_rows = pd.concat([rows for rows, _ in tested], ignore_index=True)
    return History((*comparisons.values(),), all_rows, series, (*notes,), false_alarms, per_year)


def _rows(number: int, entry: Entry) -> Iterator[list[Any]]:
    """The rows of an entry of the comparison with this `number`."""
    for row in entry.document["contrasts"]:
        if row["change"] is not None:
            interval = (np.nan if row[end] is None else row[end] for end in ("low", "high"))
            place = [number, row["network"], row["metric"], entry.document["campaign"], entry.begun_at.isoformat()]
            yield [*place, row["blocks"], row["change"], *interval, row["worse"], 0.0]


def _tested(rows: pd.DataFrame, limit: float, newest: str, notes: list[str]) -> tuple[pd.DataFrame, list[Any]]:
    """The rows of one series with the sums of its test, and its row of SERIES. `newest`: when its comparison's newest
    entry began."""
    values = np.log1p(rows["change"].to_numpy(dtype=float))
    sums = cusum.sums(cusum.scores(values))
    beyond = np.flatnonzero(sums > limit)
    times = rows["begun_at"].to_numpy()
    begin = len(values)
    alarm = [False, None, None, np.nan, np.nan]
    if len(beyond):
        # The rise began after the sum was 0 for the last time.
        begin, end = int(np.flatnonzero(sums[: beyond[0]] == 0)[-1]) + 1, beyond[0] + 1
        alarm = [True, times[beyond[0]], times[begin], *np.expm1([values[:begin].mean(), values[begin:end].mean()])]
    scatter = [np.nan] * 3
    if begin > 1:
        squares, freedom = float(np.var(values[:begin]) * begin), begin - 1
        tails = stats.chi2.isf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], freedom)
        scatter = [*np.expm1(np.sqrt(squares / np.array([freedom, *tails])))]
    correlation = _correlation(values[:begin])
    place = [*rows.iloc[0][WHERE]]
    if correlation > stats.norm.isf(CORRELATED_P) / np.sqrt(begin):
        where = f"{label(place[2])} on {label(place[1])} in comparison {place[0]}"
        notes.append(
            f"Entries of {where} resemble those before them (correlation {correlation:.2f}): either weeks are not "
            "independent, so expect more false alarms than declared, or the level has moved without an alarm"
        )
    entries = [len(values), cusum.least_values(limit), times[-1] == newest, rows["change"].iloc[-1]]
    return rows.assign(sum=sums), [*place, *entries, *scatter, correlation, limit, *alarm]


def _correlation(values: Array) -> float:
    """The correlation of each of `values` with the one before it; NaN if it is unknown."""
    centred = values - values.mean()
    squares = float(centred @ centred)
    # Values that are equal but for rounding have none.
    is_known = squares > len(values) * cusum.LEAST_SCATTER**2
    return float(centred[1:] @ centred[:-1]) / squares if is_known else np.nan
