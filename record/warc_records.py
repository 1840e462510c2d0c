"""Records of web archives (WARC 1.1, ISO 28500): plain, packed one by one, or packed as a whole.

A damaged record affects only itself: reading resumes at the next record that can be found. Each archive is read from
beginning to end, within limits, since a small one may unpack to any size.
"""

import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO

from record.http1 import MalformedMessage
from record.limits import HEAD_BYTES, SITE_BYTES, TEXT_BYTES

# The most that archives may contain together: a site's bodies, and as much again of other data.
ARCHIVE_BYTES = 2 * SITE_BYTES
# A limit for the header lines of all records together. Each line counts as LINE_COST_BYTES more, since a line costs
# more time than its letters do.
LINES_BYTES, LINE_COST_BYTES = 2 * TEXT_BYTES, 64

BLOCK_BYTES = 1 << 16
# The first bytes of a packed part (RFC 1952, section 2.3.1: gzip, deflate).
PACKED = b"\x1f\x8b\x08"
# If this many bytes unpack to nothing, they are no packed part: its head has at most 64 KiB of extra fields, and a
# file's name.
VAIN_BYTES = 1 << 17
VERSION = re.compile(rb"WARC/\d+\.\d+\s*")
FIRST_LINE_BYTES = len(b"WARC/1.1\r\n")
LENGTH = re.compile("[0-9]{1,15}")
BLANK = (b"\r\n", b"\n")
NO_RECORD = "a part of it is not a record"


class Damaged(MalformedMessage):
    """A part of an archive cannot be read, but what follows it may be readable.

    `is_new`: the part does not belong to the record before it; the packed part was damaged before the first line of a
    record could be read from it.
    """

    def __init__(self, text: str, *, is_new: bool = False) -> None:
        super().__init__(text)
        self.is_new = is_new


class BreaksOff(MalformedMessage):
    """The rest of an archive cannot be read, or exceeds a limit."""


@dataclass(frozen=True)
class Archive:
    """One web archive: its name in messages, and a function that opens it at its beginning."""

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]


def records(archives: Iterable[Archive], leave_out: Callable[[str, str], None]) -> Iterator["Record"]:
    """The records of `archives`. `leave_out` receives the name of whatever cannot be read, and the reason.

    Read the block of a record before requesting the next record.
    """
    bounds = _Bounds()
    for archive in archives:
        with archive.open() as stream:
            try:
                yield from _Reader(archive.name, stream, bounds, leave_out).records()
            except BreaksOff as error:
                leave_out(archive.name, f"it breaks off: {error}")


class Record:
    """A record: its own header fields, and its block, which can be read once."""

    def __init__(self, reader: "_Reader", fields: dict[str, list[str]], length: int) -> None:
        self._reader = reader
        self._fields = fields
        self._length = self._remaining = length
        self._is_done = False

    @property
    def kind(self) -> str:
        return self.field("WARC-Type").lower()

    @property
    def id(self) -> str:
        return _bare(self.field("WARC-Record-ID"))

    @property
    def url(self) -> str:
        """The URL of the record; "" without one. WARC 1.0 programs put it in angle brackets."""
        return _bare(self.field("WARC-Target-URI"))

    @property
    def name(self) -> str:
        """The name of the record in messages: its URL; otherwise its archive and identifier."""
        return self.url or f"{self._reader.name}, record {self.id or 'without a name'}"

    def field(self, name: str) -> str:
        """The first value of the field `name`; "" without one."""
        return next(iter(self._fields.get(name.lower(), ())), "")

    def references(self, name: str) -> frozenset[str]:
        """The identifiers of other records in the fields `name`."""
        return frozenset(map(_bare, self._fields.get(name.lower(), ())))

    def head(self, *, is_whole: bool = True) -> bytes:
        """The header fields of the message in the block, up to the blank line. Raises MalformedMessage.

        `is_whole`: refuse a message without a blank line; otherwise, b"" means that there is no message.
        """
        lines: list[bytes] = []
        size = 0
        while line := self._line(HEAD_BYTES - size + 1):
            if line in BLANK:
                return b"".join(lines).rstrip(b"\r\n")
            lines.append(line)
            size += len(line)
            if size > HEAD_BYTES:
                raise MalformedMessage(f"its message has header fields of more than {HEAD_BYTES >> 20} MiB")
        if is_whole:
            raise MalformedMessage("there is no message in its record, or no blank line after the header fields")
        return b"".join(lines).rstrip(b"\r\n")

    def rest(self, limit_bytes: int) -> bytes:
        """The rest of the block, at most `limit_bytes`. If nothing is left after that, the block is known to be whole.

        Raises MalformedMessage.
        """
        content = self._read(limit_bytes)
        if len(content) < limit_bytes or not self._remaining:
            self._end()
        return content

    def skip(self) -> str:
        """Go to the end of the block. Returns what is wrong with the record; "" if nothing is, or if it was reported
        before.

        Raises BreaksOff.
        """
        if self._is_done:
            return ""
        try:
            while self._read(BLOCK_BYTES):
                pass
            self._end()
        except Damaged as error:
            return str(error)
        return ""

    def _line(self, limit_bytes: int) -> bytes:
        with self._done_if_damaged():
            line = self._reader.line(min(limit_bytes, self._remaining))
        self._remaining -= len(line)
        return line

    def _read(self, limit_bytes: int) -> bytes:
        with self._done_if_damaged():
            content = self._reader.read(min(limit_bytes, self._remaining))
        self._remaining -= len(content)
        return content

    def _end(self) -> None:
        """Check that the archive contains the whole block, and that the record ends with the block."""
        self._is_done = True
        if self._remaining:
            raise Damaged(f"it is cut short: its record has {self._length - self._remaining} of {self._length} bytes")
        self._reader.require_end()

    @contextmanager
    def _done_if_damaged(self) -> Iterator[None]:
        try:
            yield
        except MalformedMessage:
            self._is_done = True
            raise


class _Reader:
    """Reads one archive, record by record."""

    def __init__(self, name: str, stream: IO[bytes], bounds: "_Bounds", leave_out: Callable[[str, str], None]) -> None:
        self.name = name
        self._stream = io.BufferedReader(_Unpacked(stream, bounds), BLOCK_BYTES)
        self._bounds = bounds
        self._leave_out = leave_out
        # Whether the first line of the next record was read; whether the archive is known to have no further record;
        # and whether damage at this place was reported.
        self._has_begun = self._is_over = self._is_said = False
        self.read = self._stream.read

    def line(self, limit_bytes: int = HEAD_BYTES) -> bytes:
        """The next line, or its first `limit_bytes`. Raises MalformedMessage."""
        line = self._stream.readline(limit_bytes)
        self._bounds.count(lines_bytes=len(line) + LINE_COST_BYTES)
        return line

    def records(self) -> Iterator[Record]:
        """All records of the archive. Raises BreaksOff."""
        while self._begins():
            try:
                fields = self._fields()
                length = next(iter(fields.get("content-length", ())), "")
                if not LENGTH.fullmatch(length):
                    raise Damaged("a record does not say how long it is")
            except Damaged as error:
                self._leave_out(self.name, str(error))
                self._is_said = True
                continue
            record = Record(self, fields, int(length))
            yield record
            if fault := record.skip():
                self._leave_out(record.name, fault)

    def require_end(self) -> None:
        """Check that a record ends here. Raises Damaged."""
        try:
            line = self.line(BLOCK_BYTES)
            has_ended = line in BLANK
            line = self._line_with_text() if has_ended else line
            self._has_begun, self._is_over = VERSION.fullmatch(line) is not None, not line
            if line and not self._has_begun:
                text = NO_RECORD if has_ended else "its record does not end where it says, and may cover others"
                raise Damaged(text, is_new=has_ended)
        except Damaged as error:
            self._is_said = True
            # Damage outside the record, in a packed part of its own, does not concern the record: it is reported for
            # the archive.
            if not error.is_new:
                raise
            self._leave_out(self.name, str(error))

    def _begins(self) -> bool:
        """Go to the next record; returns whether there is one. Anything before it is left out."""
        while not self._has_begun:
            if self._is_over:
                return False
            try:
                line = self._line_with_text()
                if line and not VERSION.fullmatch(line):
                    raise Damaged(NO_RECORD)
            except Damaged as error:
                if not self._is_said:
                    self._leave_out(self.name, str(error))
                self._is_said = True
            else:
                self._has_begun, self._is_over = bool(line), not line
        self._has_begun = self._is_said = False
        return True

    def _line_with_text(self) -> bytes:
        """The first line that is not empty, or the beginning of a long one; b"" at the end."""
        while (line := self._stream.readline(BLOCK_BYTES)) in BLANK:
            self._bounds.count(lines_bytes=LINE_COST_BYTES)
        self._bounds.count(lines_bytes=LINE_COST_BYTES)
        return line

    def _fields(self) -> dict[str, list[str]]:
        fields: dict[str, list[str]] = {}
        values: list[str] = []
        size = 0
        while (line := self.line(HEAD_BYTES - size + 1)) not in BLANK:
            size += len(line)
            if size > HEAD_BYTES:
                raise BreaksOff("a record's header fields are longer than any page's")
            if not line.endswith(b"\n"):
                raise Damaged("it breaks off within a record's header fields")
            text = _text(line)
            if text[0] in " \t" and values:
                values[-1] += f" {text.strip()}"
                continue
            name, colon, value = text.partition(":")
            if colon:
                values = fields.setdefault(name.strip().lower(), [])
                values.append(value.strip())
        return fields


class _Bounds:
    """Counts what was read of all archives, and ends reading when they exceed any recording of a page."""

    def __init__(self) -> None:
        self._packed_bytes = self._bytes = self._lines_bytes = 0

    def count(self, *, packed_bytes: int = 0, plain_bytes: int = 0, lines_bytes: int = 0) -> None:
        """Add to the counts. Raises BreaksOff when a limit is exceeded."""
        self._packed_bytes += packed_bytes
        self._bytes += plain_bytes
        self._lines_bytes += lines_bytes
        if max(self._packed_bytes, self._bytes) > ARCHIVE_BYTES:
            raise BreaksOff(f"it holds more than {ARCHIVE_BYTES >> 30} GiB")
        if self._lines_bytes > LINES_BYTES:
            raise BreaksOff("its records' header fields are longer than those of any page")


class _Unpacked(io.RawIOBase):
    """The content of an archive, packed or not. Raises Damaged once for each damaged packed part, then resumes at the
    next part."""

    def __init__(self, stream: IO[bytes], bounds: _Bounds) -> None:
        self._stream = stream
        self._bounds = bounds
        self._fault: BreaksOff | None = None
        self._packed = b""
        self._inflater: zlib._Decompress | None = None
        self._part_bytes = 0  # bytes unpacked from the present packed part
        self._vain = b""  # the beginning of the present part while nothing has been unpacked from it
        self._is_packed: bool | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill `buffer`. Raises MalformedMessage."""
        if self._is_packed is None:
            self._fill(len(PACKED))
            self._is_packed = self._packed.startswith(PACKED)
        part = self._inflated(len(buffer)) if self._is_packed else self._plain(len(buffer))
        self._bounds.count(plain_bytes=len(part))
        buffer[: len(part)] = part
        return len(part)

    def _plain(self, length: int) -> bytes:
        part, self._packed = self._packed[:length], self._packed[length:]
        return part or self._block(length)

    def _inflated(self, length: int) -> bytes:
        while True:
            if self._inflater is None:
                if not self._begin():
                    return b""
                self._inflater, self._part_bytes, self._vain = zlib.decompressobj(16 + zlib.MAX_WBITS), 0, b""
            if len(self._vain) > VAIN_BYTES or (not self._packed and not self._fill(1)):
                self._abandon()
                raise self._damaged("it breaks off within a packed part")
            try:
                part = self._inflater.decompress(self._packed, length)
            except zlib.error as error:
                self._abandon()
                raise self._damaged(f"a packed part of it is damaged ({error})") from None
            rest = self._inflater.unconsumed_tail or self._inflater.unused_data
            self._part_bytes += len(part)
            self._vain = b"" if self._part_bytes else self._vain + self._packed[: len(self._packed) - len(rest)]
            self._packed = rest
            if self._inflater.eof:
                self._inflater = None
            if part:
                return part

    def _begin(self) -> bool:
        """Whether another packed part begins. There may be zeros in between."""
        while self._fill(1):
            self._packed = self._packed.lstrip(b"\0")
            self._fill(len(PACKED))
            if self._packed.startswith(PACKED):
                return True
            if self._packed:
                self._find(0)
                self._part_bytes = 0
                raise self._damaged("a part of it is not packed, and others are")
        return False

    def _abandon(self) -> None:
        """Go to the next part, which may begin within the bytes from which nothing was unpacked."""
        self._packed = self._vain + self._packed
        self._bounds.count(packed_bytes=len(self._packed))  # these bytes are read once more
        self._find(1)

    def _find(self, begin: int) -> None:
        """Go to the next place from `begin` on where a packed part may begin, or to the end."""
        while (at := self._packed.find(PACKED, begin)) < 0:
            begin = 0
            self._packed = self._packed[1 - len(PACKED) :]
            if not self._fill(len(self._packed) + 1):
                at = len(self._packed)
                break
        self._packed = self._packed[at:]

    def _damaged(self, text: str) -> Damaged:
        self._inflater = None
        return Damaged(text, is_new=self._part_bytes < FIRST_LINE_BYTES)

    def _fill(self, length: int) -> bool:
        """Read until `length` packed bytes wait to be unpacked; returns whether that many wait."""
        while len(self._packed) < length and (block := self._block(BLOCK_BYTES)):
            self._packed += block
        return len(self._packed) >= length

    def _block(self, length: int) -> bytes:
        if self._fault:
            raise self._fault
        try:
            block = self._stream.read(length)
            self._bounds.count(packed_bytes=len(block))
        except BreaksOff as error:
            self._fault = error
            raise
        # Reading a damaged archive in a ZIP file raises errors of many kinds.
        except Exception as error:
            self._fault = BreaksOff(str(error))
            raise self._fault from None
        return block


def _bare(text: str) -> str:
    return text.removeprefix("<").removesuffix(">")


def _text(line: bytes) -> str:
    """A line of a record's own header fields, which are in UTF-8 (WARC 1.1, section 4)."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
