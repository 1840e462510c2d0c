"""Conditions files: the rate, delay and loss of one direction of a network over time, as comma-separated values.

    # time_s and any of the other columns, in any order; lines that begin with # are comments
    time_s,rate_mbps,delay_ms,loss
    0,50,0,0
    0.5,35,12.5,0.01
    60,35,12.5,0.01

A row applies until the next row's time. The last row's time is the period, after which the first row follows again;
its values are checked, but never apply. `shells/src/conditions.rs` reads the same files, and has the same limits.
"""

import csv
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TIME, RATE, DELAY, LOSS = "time_s", "rate_mbps", "delay_ms", "loss"
COLUMNS = (TIME, RATE, DELAY, LOSS)
# The largest value in each column. The shells keep times and delays in nanoseconds.
MOST = {TIME: 1e9, RATE: 100_000.0, DELAY: 1e9, LOSS: 1.0}
LARGEST_FILE_BYTES, MOST_OPPORTUNITIES = 64 << 20, 50_000_000
# The first bytes of a file compressed by gzip (RFC 1952). Only delivery traces may be compressed.
GZIP_MAGIC = b"\x1f\x8b"
# The header must end within this many bytes.
LONGEST_LINE_BYTES = 4096
# A link sends whole packets: with fewer packets in a round, rounding changes its mean rate by more than 1 %.
LEAST_OPPORTUNITIES = 100
NS_PER_S, NS_PER_MS = 1_000_000_000, 1_000_000
# The bits of a full packet that count towards a rate: its IP length.
PACKET_BITS = 12_000.0
# Tolerances for floating point: a time (ms) may be this much too large, a number of packets this much too small.
ROUNDING_MS, ROUNDING_PACKETS = 1e-6, 1e-6


@dataclass(frozen=True)
class Conditions:
    """The rows of a file: when each begins (ms), and its values by column. `period_ms`: when the last row ends."""

    at_ms: tuple[float, ...]
    period_ms: float
    columns: dict[str, tuple[float, ...]]

    def has(self, column: str) -> bool:
        """Whether the file has this column."""
        return column in self.columns

    def mean(self, column: str) -> float:
        """The mean of a column over time."""
        return sum(value * span_ms for value, span_ms in zip(self.columns[column], self._spans_ms(), strict=True)) / (
            self.period_ms
        )

    def largest(self, column: str) -> float:
        """The largest value of a column; 0 without the column."""
        return max(self.columns.get(column, (0.0,)))

    def at(self, column: str, since_start_ms: float) -> float:
        """The value of a column this long after the beginning; 0 without the column."""
        if column not in self.columns:
            return 0.0
        return self.columns[column][bisect_right(self.at_ms, since_start_ms % self.period_ms) - 1]

    def opportunities_ms(self) -> list[int]:
        """The times in a round at which a link with these rates can send a full packet, as in a delivery trace."""
        opportunities: list[int] = []
        for begin_ms, bits_per_ms, bits, packets in self._let_through():
            for packet in range(1, packets + 1):
                due_ms = begin_ms + (packet * PACKET_BITS - bits) / bits_per_ms
                opportunities.append(math.ceil(due_ms - ROUNDING_MS))
        # A trace's last time is its period. If no packet is due then, one is sent early.
        if opportunities and opportunities[-1] < self.period_ms:
            opportunities.append(round(self.period_ms))
        return opportunities

    def packets(self) -> int:
        """How many full packets the rates allow in one round."""
        return sum(packets for *_, packets in self._let_through())

    def _let_through(self) -> Iterator[tuple[float, float, float, int]]:
        """For each row: its beginning (ms), its bits per ms, the bits of a partial packet left over from earlier rows,
        and how many packets are sent in it."""
        bits = 0.0
        for begin_ms, span_ms, mbps in zip(self.at_ms, self._spans_ms(), self.columns[RATE], strict=True):
            bits_per_ms = mbps * 1e3
            more_bits = span_ms * bits_per_ms
            packets = math.floor((bits + more_bits) / PACKET_BITS + ROUNDING_PACKETS)
            yield begin_ms, bits_per_ms, bits, packets
            bits += more_bits - packets * PACKET_BITS

    def _spans_ms(self) -> list[float]:
        return [after - before for before, after in itertools.pairwise((*self.at_ms, self.period_ms))]


def is_conditions(path: Path) -> bool:
    """Whether a trace is a conditions file: its header has several columns, while delivery traces contain only numbers.

    Raises OSError.
    """
    with path.open("rb") as file:
        if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            return False
        file.seek(0)
        while line := file.readline(LONGEST_LINE_BYTES):
            if line.strip() and not line.strip().startswith(b"#"):
                return b"," in line
    return False


def read_conditions(path: Path) -> Conditions:
    """The conditions in the file. Raises OSError, and ValueError with the fault and its line."""
    if (size := path.stat().st_size) > LARGEST_FILE_BYTES:
        raise ValueError(f"it has {size} bytes, and 64 MiB are the most; give fewer rows")
    with path.open(newline="", encoding="utf-8") as file:
        conditions = parse_conditions(file.read())
    check_round(conditions)
    return conditions


def check_round(conditions: Conditions) -> None:
    """Raise ValueError if the rates allow too few packets in a round to be exact, or too many to keep."""
    if conditions.has(RATE) and not LEAST_OPPORTUNITIES <= (packets := conditions.packets()) <= MOST_OPPORTUNITIES:
        raise ValueError(
            f"its rates let {packets} packets through in a round, and must let through {LEAST_OPPORTUNITIES} to "
            f"{MOST_OPPORTUNITIES}; give a longer or a shorter round"
        )


def parse_conditions(text: str) -> Conditions:
    """The conditions in a file's text. Raises ValueError with the faulty line, and the fault."""
    lines = _lines(text)
    number, header = next(lines, (0, []))
    if not header:
        raise ValueError("it is empty; give a header and rows")
    if unknown := [name for name in header if name not in COLUMNS]:
        raise ValueError(f"line {number}: {unknown[0]!r} is not one of {', '.join(COLUMNS)}")
    if len(set(header)) < len(header) or TIME not in header or len(header) < 2:
        raise ValueError(f"line {number}: give {TIME} and at least one of {RATE}, {DELAY}, {LOSS}, each once")
    rows: list[dict[str, float]] = []
    for number, values in lines:
        if len(values) != len(header):
            raise ValueError(f"line {number}: {len(values)} values for {len(header)} columns")
        row = {name: _number(name, value, number) for name, value in zip(header, values, strict=True)}
        if not rows and row[TIME]:
            raise ValueError(f"line {number}: the first time is not 0")
        if rows and row[TIME] <= rows[-1][TIME]:
            raise ValueError(f"line {number}: its time is not later than the row's before; sort the rows")
        rows.append(row)
    if len(rows) < 2:
        raise ValueError("it has fewer than 2 rows; the last row's time is the period")
    *held, _ = rows
    # Rounded to nanoseconds, as the shells do.
    times_ns = [round(row[TIME] * NS_PER_S) for row in rows]
    if times_ns[-1] % NS_PER_MS:
        raise ValueError(f"line {number}: the last time is the period, and must be in whole milliseconds")
    columns = {name: tuple(row[name] for row in held) for name in header if name != TIME}
    *at_ms, period_ms = (at_ns / NS_PER_MS for at_ns in times_ns)
    return Conditions(tuple(at_ms), period_ms, columns)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each line that is not a comment, with its number, counted from 1."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.strip().startswith("#"):
            yield number, [value.strip() for value in next(csv.reader([line]))]


def _number(column: str, text: str, line: int) -> float:
    """A value in the format that the shells accept: digits with at most one point."""
    if text and all(letter in "0123456789." for letter in text) and text.count(".") < 2 and text != ".":
        value = float(text)
        if value <= MOST[column]:
            return value
    raise ValueError(f"line {line}: {column} is {text!r}, and must be a number from 0 to {MOST[column]:g}")
