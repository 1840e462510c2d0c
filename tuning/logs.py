"""Reads logs of measurements, tables written by other programs, as columns of numbers and times.

Programs write numbers and dates in many ways. An ambiguous text is refused, with its line.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from base.errors import EyelevelError

DELIMITERS = (",", ";", "\t", "|", " ")
# Lower-case texts that mean "no value".
MISSING = frozenset(("", "-", "--", "?", "*", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none"))
# Many programs write -1 if nothing was measured. No column of a log has negative values, except times.
NO_VALUE = -1.0
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
OTHER_MARK = str.maketrans(",.", ".,")
# In such a number, the comma may be a decimal comma or separate thousands.
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")

ZONE = r"(?P<zone> ?(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?))?"
FRACTION = r"([.,](?P<fraction>[0-9]{1,9}))?"
CLOCK = rf"(?P<hour>[0-9]{{1,2}})(?P<colon>[:.-])(?P<minute>[0-9]{{2}})((?P=colon)(?P<second>[0-9]{{2}}){FRACTION})?"
HALF = r"(?P<half> ?[AP]M)?"
COMPACT = rf"(?P<hour>[0-9]{{2}})(?P<minute>[0-9]{{2}})((?P<second>[0-9]{{2}}){FRACTION})?"
COMPACT_DATE = r"(?P<year>(19|20)[0-9]{2})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
BETWEEN = "([T_ -]|, )"
# The notations in docs/contributors/traces.md; all dates of a column must have the same one.
YEAR_FIRST, YEAR_LAST, COMPACT_DATES, TIMES_OF_DAY = (
    re.compile(pattern + ZONE, re.IGNORECASE)
    for pattern in (
        rf"(?P<year>[0-9]{{4}})(?P<dash>[-/.])(?P<month>[0-9]{{1,2}})(?P=dash)(?P<day>[0-9]{{1,2}}){BETWEEN}{CLOCK}{HALF}",
        rf"(?P<month>[0-9]{{1,2}})(?P<dash>[-/.])(?P<day>[0-9]{{1,2}})(?P=dash)(?P<year>[0-9]{{4}}){BETWEEN}{CLOCK}{HALF}",
        rf"{COMPACT_DATE}[T_ -]?{COMPACT}",
        rf"{CLOCK.replace('[:.-]', ':')}{HALF}",
    )
)
DAY_S = 86_400.0


@dataclass(frozen=True)
class Log:
    """The requested columns of a log, as texts, and the line number of each row."""

    path: Path
    lines: tuple[int, ...]
    texts: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: Path, names: Sequence[str]) -> "Log":
        """The columns `names` of the log at `path`. Raises EyelevelError."""
        try:
            content = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise EyelevelError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise EyelevelError(f"{path} is not text in UTF-8; save it as such") from None
        lines = list(enumerate(content.split("\n"), start=1))
        lines = [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not lines:
            raise EyelevelError(f"{path} has no table: it is empty, or has comments alone")
        header, delimiter = _header(path, lines[0][1], names)
        rows = list(_rows(path, lines[1:], delimiter, len(header)))
        places = [header.index(name) for name in names]
        columns = {name: tuple(row[place] for _, row in rows) for name, place in zip(names, places, strict=True)}
        return cls(path, tuple(number for number, _ in rows), columns)

    def numbers(self, name: str) -> list[Decimal | None]:
        """A column's numbers; None for a missing value. Raises EyelevelError."""
        has_commas, values = self._has_decimal_commas(), list[Decimal | None]()
        for line, text in self._values(name):
            # A number with the other decimal mark is refused.
            number = text.translate(OTHER_MARK) if text and has_commas else text
            if number and not NUMBER.fullmatch(number):
                mark = " with a decimal comma, as others have," if has_commas else ","
                fault = f"is not a number{mark} and must be empty where nothing was measured"
                raise self._fault(name, line, text or "", fault)
            values.append(Decimal(number) if number else None)
        return values

    def measurements(self, name: str, *, positive: bool = False) -> list[float | None]:
        """A column's numbers, none of which may be negative, nor 0 if they must be `positive`; NO_VALUE means a missing
        value.

        Raises EyelevelError.
        """
        values = [None if number is None or number == NO_VALUE else float(number) for number in self.numbers(name)]
        for (line, text), value in zip(self._values(name), values, strict=True):
            if value is not None and (value < 0 or (positive and not value)):
                raise self._fault(name, line, text or "", "cannot be measured; leave it empty where nothing was")
        if all(value is None for value in values):
            raise EyelevelError(f"{self.path} has no value in the column {name!r}")
        return values

    def times_s(self, name: str, unit_s: float) -> tuple[list[float | None], tuple[str, ...]]:
        """The times in a column since the earliest one, and notes for the user.

        Numbers are in a unit of `unit_s` seconds. Raises EyelevelError.
        """
        values = [(line, text) for line, text in self._values(name) if text is not None]
        times_s, notes = list[float](), tuple[str, ...]()
        if not values:
            raise EyelevelError(f"{self.path} has no value in the column {name!r}")
        is_compact = unit_s == 1 and all(_is_compact_date(text) for _, text in values)
        if not is_compact and NUMBER.fullmatch(values[0][1].replace(",", ".")):
            numbers = [number for number in self.numbers(name) if number is not None]
            # Times since 1970 have more digits than a float can hold.
            times_s = [float((number - min(numbers)) * Decimal(str(unit_s))) for number in numbers]
        elif TIMES_OF_DAY.fullmatch(values[0][1]):
            times_s = self._times_of_day_s(name, values)
        else:
            times_s, notes = self._dates_s(name, values)
        following = iter(times_s)
        return [None if text is None else next(following) for _, text in self._values(name)], notes

    def _dates_s(self, name: str, values: list[tuple[int, str]]) -> tuple[list[float], tuple[str, ...]]:
        """The times of dates since the earliest one, and notes for the user."""
        pattern = next((one for one in (YEAR_FIRST, YEAR_LAST, COMPACT_DATES) if one.fullmatch(values[0][1])), None)
        if pattern is None:
            raise self._fault(name, *values[0], "is not a number, and no date as docs/contributors/traces.md has them")
        matches = self._matches(name, values, pattern)
        if pattern is not YEAR_LAST:
            return self._since_earliest(name, values, [_date(match) for match in matches]), ()
        readings = {
            words: [_date(match, day_first=day_first) for match in matches]
            for words, day_first in (("day/month/year", True), ("month/day/year", False))
        }
        possible = {words: dates for words, dates in readings.items() if None not in dates} or readings
        times_s = {words: self._since_earliest(name, values, dates) for words, dates in possible.items()}
        if len(times_s) == 1 or len(set(map(tuple, times_s.values()))) == 1:
            return next(iter(times_s.values())), ()
        if len(fitting := [words for words, times in times_s.items() if max(np.diff(sorted(times))) <= DAY_S]) != 1:
            fault = "can be read as day/month/year and as month/day/year; write dates as year-month-day"
            raise self._fault(name, *values[0], fault)
        (words,) = fitting
        return times_s[words], (f"dates are {words}: read the other way, rows would be days apart",)

    def _times_of_day_s(self, name: str, values: list[tuple[int, str]]) -> list[float]:
        """The times of day since the first one, which may continue past midnight."""
        matches = self._matches(name, values, TIMES_OF_DAY)
        days_s = self._since_earliest(name, values, [_date(match) for match in matches])
        times_s = np.unwrap(days_s, period=DAY_S)
        if (falls := np.flatnonzero(np.diff(times_s) < 0)).size:
            fault = "is earlier than the row's before, or half a day later; give dates, too"
            raise self._fault(name, *values[int(falls[0]) + 1], fault)
        return [float(time_s) for time_s in times_s - times_s[0]]

    def _matches(self, name: str, values: list[tuple[int, str]], pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """`values` matched with the `pattern` of the first one; all must have the same parts."""
        matches: list[re.Match[str]] = []
        for line, text in values:
            match = pattern.fullmatch(text)
            if not match or any(bool(match[part]) != bool(matches[0][part]) for part in _parts(pattern) if matches):
                raise self._fault(name, line, text, f"is not written as {values[0][1][:80]!r} is")
            matches.append(match)
        return matches

    def _since_earliest(
        self, name: str, values: list[tuple[int, str]], dates: Sequence[datetime | None]
    ) -> list[float]:
        known = [date for date in dates if date is not None]
        if len(known) < len(dates):
            raise self._fault(
                name, *values[list(dates).index(None)], "is not a date of the calendar, or not a time of day"
            )
        return [(date - min(known)).total_seconds() for date in known]

    def _has_decimal_commas(self) -> bool:
        """Whether the numbers of all columns have a decimal comma and no point. Raises EyelevelError."""
        texts = [(name, line, text) for name in self.texts for line, text in self._values(name) if text and "," in text]
        commas = [one for one in texts if NUMBER.fullmatch(one[-1].translate(OTHER_MARK))]
        if commas and all(THOUSANDS.fullmatch(text) for *_, text in commas):
            raise self._fault(*commas[0], "may have a decimal comma, or one between thousands; write a decimal point")
        return bool(commas)

    def _values(self, name: str) -> Iterator[tuple[int, str | None]]:
        """The line and the text of each row; None for a missing value."""
        for line, text in zip(self.lines, self.texts[name], strict=True):
            yield line, None if text.lower() in MISSING else text

    def _fault(self, name: str, line: int, text: str, fault: str) -> EyelevelError:
        return EyelevelError(f"{self.path}, line {line}: {name} is {text[:80]!r}, which {fault}")


def _header(path: Path, line: str, names: Sequence[str]) -> tuple[list[str], str]:
    """The names in the header, and the delimiter that separates them so that all `names` are found."""
    headers = [(_split(path, line, one), one) for one in DELIMITERS]
    header, delimiter = max(headers, key=lambda one: (len(set(names).intersection(one[0])), len(one[0])))
    for name in names:
        if name not in header:
            raise EyelevelError(f"{path} has no column {name!r}; it has {', '.join(map(repr, header))}")
        if header.count(name) > 1:
            raise EyelevelError(f"{path} has {header.count(name)} columns {name!r}; give them different names")
    while not header[-1]:
        header.pop()
    return header, delimiter


def _rows(path: Path, lines: list[tuple[int, str]], delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """The line number and the values of each row."""
    for number, line in lines:
        values = _split(path, line, delimiter)
        # A delimiter at the end of a line does not start another value.
        while len(values) > width and not values[-1]:
            values.pop()
        if len(values) != width:
            raise EyelevelError(f"{path}, line {number}: {len(values)} values for {width} columns")
        yield number, values


def _split(path: Path, line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    reader = csv.reader([line], delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        return [value.strip() for value in next(reader)]
    except csv.Error as error:
        raise EyelevelError(f"{path}: {line[:80]!r} is not a row of a table: {error}") from None


def _parts(pattern: re.Pattern[str]) -> Iterator[str]:
    """The parts that a date matching `pattern` may have."""
    return (part for part in ("half", "zone", "second") if part in pattern.groupindex)


def _is_compact_date(text: str) -> bool:
    """Whether `text` is a date although it may consist only of digits."""
    match = COMPACT_DATES.fullmatch(text)
    return bool(match and _date(match))


def _date(match: re.Match[str], *, day_first: bool = False) -> datetime | None:
    """The date with these parts, in UTC; None when there is no such date.

    If the year is last, the first number is the month, or with `day_first` the day.
    """
    parts = {"year": "1970", "month": "1", "day": "1", "half": None, **match.groupdict()}
    month, day = (parts["day"], parts["month"]) if day_first else (parts["month"], parts["day"])
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").strip().lower()
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    into_day = timedelta(minutes=int(parts["minute"] or 0), seconds=int(parts["second"] or 0))
    into_day += timedelta(microseconds=int((parts["fraction"] or "").ljust(6, "0")[:6]))
    if into_day >= timedelta(hours=1) or int(parts["second"] or 0) > 59:
        return None
    try:
        begin = datetime(int(parts["year"] or 0), int(month or 0), int(day or 0), hour, tzinfo=UTC)
        return begin + into_day - _offset(parts["zone"] or "")
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> timedelta:
    """How far the clocks of `zone` are ahead of UTC."""
    digits = re.sub("[^0-9]", "", zone).ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if "-" in zone else offset
