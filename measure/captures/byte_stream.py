"""A stream of bytes in parts. Each part has a value, such as the stream that it belongs to, or its kind."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")


class ByteStream(Generic[Value]):
    """A stream of bytes that grows at its end."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._values: list[Value] = []

    @property
    def length(self) -> int:
        """The number of bytes so far."""
        return self._ends[-1] if self._ends else 0

    def append(self, length: int, value: Value) -> None:
        """Append `length` bytes with this value; nothing if `length` is 0 or negative."""
        if length > 0:
            self._ends.append(self.length + length)
            self._values.append(value)

    def between(self, start: int, end: int) -> Iterator[tuple[int, Value]]:
        """The parts of the bytes from `start` until just before `end`, as far as the stream goes: each part's length in
        this range, and its value."""
        place = bisect_right(self._ends, start)
        while start < end and place < len(self._ends):
            stop = min(end, self._ends[place])
            yield stop - start, self._values[place]
            start, place = stop, place + 1
