"""Converts published traces of networks into conditions files (`tuning.conditions`), and back.

- Mahimahi's delivery traces: a line for each full packet that could be sent, in ms.
- CellReplay's pairs of traces (Sentosa et al., NSDI 2025). The heavy trace is a delivery trace. Each line of the light
  trace has a time, the delay of a packet on an idle network, and the arrival times of the packets sent right after it
  (a train), all in ms. The rate comes from the heavy trace, the delay from the light one. The trains are ignored: they
  show that a few packets pass faster than many, but a link here has only one rate.
- Logs of measurements, as tables with a column for the time and others for rate, round trip, delay or loss.

Delays are converted to delays beyond the smallest one, which a network has as `min_rtt_ms`.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from base.errors import EyelevelError, Misuse
from base.words import plural
from tuning.conditions import (
    COLUMNS,
    DELAY,
    LOSS,
    MOST,
    PACKET_BITS,
    RATE,
    ROUNDING_MS,
    TIME,
    check_round,
    is_conditions,
    parse_conditions,
    read_conditions,
)
from tuning.impairments.rate import read_trace
from tuning.logs import Log

# The interval over which the rate of a delivery trace is averaged.
BIN_MS = 100
# The allowed units for each kind of column of a log, with the factor that converts each to our unit.
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "rate": {"bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1, "Gbit/s": 1e3, "B/s": 8e-6, "kB/s": 8e-3, "MB/s": 8},
    "rtt": {"s": 1e3, "ms": 1, "us": 1e-3},
    "delay": {"s": 1e3, "ms": 1, "us": 1e-3},
    "loss": {"share": 1, "percent": 1e-2},
}
# A time in a trace (ms): up to the largest time of conditions files, ASCII digits only.
WHOLE = re.compile("[0-9]{1,12}")
DECIMALS = {TIME: 6, RATE: 6, DELAY: 3, LOSS: 6}


@dataclass(frozen=True)
class Converted:
    """Conditions as a table, with a row for each change and one for the end; the smallest round-trip time (ms), if
    known; and notes for the user."""

    table: pd.DataFrame
    min_rtt_ms: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column of a log, and its unit."""

    name: str
    unit: str


def parse_column(what: str, text: str) -> Column:
    """The column that `text` names, like "rtt (ms):ms"; without a unit, in our unit. Raises EyelevelError."""
    usual = next(unit for unit, factor in UNITS[what].items() if factor == 1)
    name, separator, unit = text.rpartition(":")
    if not separator:
        return Column(text, usual)
    if unit not in UNITS[what]:
        raise Misuse(f"--{what} has the unit {unit!r}; it is one of {', '.join(UNITS[what])}")
    return Column(name, unit)


def from_delivery_trace(path: Path) -> Converted:
    """The rate of a Mahimahi delivery trace, averaged over tenths of a second. Raises EyelevelError."""
    return Converted(_rates(path))


def from_cellreplay(light: Path, heavy: Path) -> Converted:
    """The delay from CellReplay's `light` trace of a direction, and the rate from its `heavy` trace. Raises
    EyelevelError."""
    rates = _rates(heavy)
    try:
        lines = light.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{light} cannot be read: {error}") from None
    rows = [line.split()[:2] for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) < 2 or not all(WHOLE.fullmatch(word) for word in row):
            raise EyelevelError(f"{light}, line {number}: lines must begin with a time and a delay, in whole ms from 0")
    times_ms, delays_ms = np.array(rows, float).reshape(-1, 2).T
    if len(times_ms) < 2 or (np.diff(times_ms) <= 0).any():
        raise EyelevelError(f"{light}: it must have two lines at least, of rising times")
    least_ms = float(delays_ms.min())
    # Both traces count from the same instant. Before the first measured delay, that delay is assumed.
    times_s = np.append(0.0, times_ms[1:] / 1e3)
    ends_s = {"heavy": float(rates[TIME].iloc[-1]), "light": float(times_s[-1])}
    period_s = min(ends_s.values())
    delays = pd.DataFrame({TIME: times_s, DELAY: delays_ms - least_ms})
    table = rates.merge(delays, on=TIME, how="outer").sort_values(TIME).ffill()
    table = _closed(table[table[TIME] < period_s].reset_index(drop=True), period_s)
    notes = ["in these traces, short trains of packets pass faster than long ones; the conversion ignores that"]
    if period_s < (longest_s := max(ends_s.values())):
        longer = max(ends_s, key=ends_s.__getitem__)
        notes.append(f"the {longer} trace is longer: its last {longest_s - period_s:.3g} s are left out")
    return Converted(table, 2 * least_ms, tuple(notes))


def from_log(path: Path, columns: Mapping[str, Column]) -> Converted:
    """The conditions in a log of measurements; `columns` maps a quantity ("time", "rate", …) to its column. Raises
    EyelevelError."""
    log = Log.read(path, [column.name for column in columns.values()])
    times_s, notes = log.times_s(columns["time"].name, UNITS["time"][columns["time"].unit])
    table = pd.DataFrame({"time": times_s}, dtype=float)
    for what, column in columns.items():
        if what != "time":
            # A round trip of 0 is impossible.
            measured = log.measurements(column.name, positive=what == "rtt")
            table[what] = pd.Series(measured, dtype=float) * UNITS[what][column.unit]
    if untimed := int(table["time"].isna().sum()):
        notes += (f"{plural('row', untimed)} without a time: left out",)
    table = table.dropna(subset=["time"])
    if lacking := int(table.isna().any(axis=1).sum()):
        notes += (
            f"{plural('row', lacking)} without a value (or with -1): that of the row before is used, or the next",
        )
    if repeated := int(table["time"].duplicated().sum()):
        notes += (f"{plural('row', repeated)} with the time of another: their mean is used",)
    # A missing value is taken from the measurement before.
    table = table.groupby("time", as_index=False).mean().sort_values("time").ffill().bfill()
    if len(table) < 2:
        raise EyelevelError(f"{path} has fewer than 2 times in {columns['time'].name!r}")
    min_rtt_ms = None
    converted = pd.DataFrame({TIME: table["time"] - table["time"].iloc[0]})
    if "rate" in table:
        converted[RATE] = table["rate"]
    if "rtt" in table:
        min_rtt_ms = float(table["rtt"].min())
        converted[DELAY] = (table["rtt"] - min_rtt_ms) / 2
    elif "delay" in table:
        min_rtt_ms = 2 * float(table["delay"].min())
        converted[DELAY] = table["delay"] - table["delay"].min()
    if "loss" in table:
        converted[LOSS] = table["loss"]
    # The last measurement is assumed to hold for the median interval between measurements.
    usual_s = float(converted[TIME].diff().median())
    return Converted(_closed(converted, converted[TIME].iloc[-1] + usual_s), min_rtt_ms, notes)


def text_of(converted: Converted, source: str) -> str:
    """The text of a conditions file that names its source. Raises EyelevelError when a value is not allowed."""
    table = converted.table
    for column in table:
        values = table[column].to_numpy(float)
        if not np.isfinite(values).all() or values.min() < 0 or values.max() > MOST[str(column)]:
            raise EyelevelError(
                f"{source}: {column} must be from 0 to {MOST[str(column)]:g}, in each row; is it in that unit?"
            )
    lines = [f"# Made from {source} by 'eyelevel convert-trace'.", ",".join(table.columns)]
    decimals = [DECIMALS[str(column)] for column in table]
    for row in table.itertuples(index=False):
        lines.append(",".join(_digits(float(value), places) for value, places in zip(row, decimals, strict=True)))
    text = "\n".join(lines) + "\n"
    try:
        check_round(parse_conditions(text))
    except ValueError as error:
        raise EyelevelError(f"{source} cannot be converted into conditions of a network: {error}") from None
    return text


def has_columns(path: Path) -> bool:
    """Whether the file at `path` has columns: it is a conditions file or a log. Raises EyelevelError when it cannot be
    read."""
    try:
        return is_conditions(path)
    except OSError as error:
        raise EyelevelError(f"{path}: {error.strerror}") from None


def delivery_trace_text(path: Path) -> str:
    """The rates of the conditions file at `path` as a Mahimahi delivery trace. Raises EyelevelError."""
    try:
        conditions = read_conditions(path)
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{path}: {error}") from None
    if not conditions.has(RATE):
        raise EyelevelError(f"{path} has no {RATE}, which a delivery trace needs")
    return "".join(f"{at_ms}\n" for at_ms in conditions.opportunities_ms())


def _rates(path: Path) -> pd.DataFrame:
    """The rate of a delivery trace over time, and its end."""
    try:
        at_ms = np.array([_whole_ms(line) for line in read_trace(path)])
    except (OSError, EOFError, ValueError) as error:
        raise EyelevelError(f"{path} is not a delivery trace of Mahimahi's: {error}") from None
    if not len(at_ms) or at_ms[-1] == 0 or (np.diff(at_ms) < 0).any():
        raise EyelevelError(f"{path} is not a delivery trace of Mahimahi's: its times must rise to more than 0")
    edges = np.append(np.arange(0, at_ms[-1], BIN_MS), at_ms[-1])
    # An opportunity at the end of a bin belongs to this bin, since the packet that is due then has been sent by then.
    counts, _ = np.histogram(np.maximum(at_ms - 0.5, 0), edges)
    rates = counts * PACKET_BITS / 1e3 / np.diff(edges)
    return _closed(pd.DataFrame({TIME: edges[:-1] / 1e3, RATE: rates}), at_ms[-1] / 1e3)


def _whole_ms(line: bytes) -> int:
    """The number of ms in a line of a delivery trace. Raises ValueError."""
    if not WHOLE.fullmatch(text := line.decode()):
        raise ValueError(f"{text[:80]!r} is not a time in whole ms from 0 on")
    return int(text)


def _closed(table: pd.DataFrame, period_s: float) -> pd.DataFrame:
    """`table` without rows that change nothing, and with a row for its end: the next whole millisecond."""
    period_s = math.ceil(period_s * 1e3 - ROUNDING_MS) / 1e3
    changes = table.drop(columns=TIME).diff().ne(0).any(axis=1)
    end = table.iloc[[-1]].assign(**{TIME: period_s})
    joined = pd.concat([table[changes], end], ignore_index=True)
    return joined[[column for column in COLUMNS if column in joined]]


def _digits(value: float, places: int) -> str:
    text = f"{value:.{places}f}".rstrip("0").rstrip(".")
    return text if text and not math.isclose(value, 0) else "0"
