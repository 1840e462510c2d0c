"""A film's times and pictures, from one pass of FFmpeg through it.

A page changes less often than it is filmed, so pictures are made only of frames that differ, in any pixel, from the
frame before. They come by pipe and are handed on one by one: a film has no part on the disk or in memory that grows
with its pictures, but what their receivers keep.
"""

import math
import os
import re
import selectors
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of

Pixels = NDArray[np.uint8]
Receiver = Callable[[Pixels], None]

# The side of the blocks in which two pictures are compared, in pixels.
BLOCK = 8
# The longer side of the thumbnails that Browsertime's script compares, in pixels.
THUMBNAIL_PIXELS = 400
STRIP_WIDTH_PIXELS = 240

# The first filters note the time of every frame and let the changes pass: `freezedetect` says of each frame that
# differs from the one before that a freeze ended; of the first frame that is added.
CHANGE = "lavfi.freezedetect.freeze_end"
CHANGES = f"""
[0:v]showinfo@film=checksum=0,
    metadata=add:key=frame:value=0, metadata=print:key=frame:file='pipe\\:{{frame_times}}',
    freezedetect=noise=0:duration=0, metadata=add:key={CHANGE}:value=0:enable='eq(n,0)',
    metadata=print:key={CHANGE}:file='pipe\\:{{change_times}}', metadata=select:key={CHANGE}, split={{count}}"""
# The filters that scale the changes, by the name of their output. Thumbnails are made, and left out where they are
# nearly alike, as Browsertime's script has it done.
SCALING = {
    "thumbnails": f"""
    scale=iw*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih):ih*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih),
    mpdecimate=max=0:hi=64:lo=640:frac=0.001,
    metadata=print:key={CHANGE}:file='pipe\\:{{thumbnail_times}}'""",
    "blocks": f"""
    crop=iw-mod(iw\\,{BLOCK}):ih-mod(ih\\,{BLOCK}):0:0, scale=iw/{BLOCK}:ih/{BLOCK}:flags=area""",
    "strip": f"""
    scale={STRIP_WIDTH_PIXELS}:-2""",
}
PIXEL_FORMATS = {"thumbnails": "rgb24", "blocks": "rgb24", "strip": "yuvj444p"}
TIMES = ("frame_times", "change_times", "thumbnail_times")
READ_BYTES = 1 << 16

# The output of the filters `metadata` and `showinfo`.
TIME = re.compile(r"^frame:(\d+) +pts:(-?\d+) +pts_time:(\S+)$", re.MULTILINE)
CLOCK = re.compile(r"\[showinfo@film @ \w+\] config in time_base: (\d+/\d+), frame_rate: (\d+/\d+)")
SIZE = re.compile(r"\[showinfo@film @ \w+\] n: *0 .* s:(\d+)x(\d+) ")


@dataclass(frozen=True)
class FilmTimes:
    """The size of a film and the times of its frames.

    `width` and `height` are in pixels. `times` are those of all frames, in units of `time_base_s`; `changes` has the
    numbers of the frames that are changes: of the first frame, and of each that differs from the one before.
    `thumbnail_times_ms` are those of the thumbnails, if there are any.
    """

    width: int
    height: int
    frames_per_s: Fraction
    time_base_s: Fraction
    times: tuple[int, ...]
    changes: tuple[int, ...]
    thumbnail_times_ms: tuple[int, ...]

    def position(self, frame: int) -> int:
        """The number that frame number `frame` would have if none before it was missing."""
        return round((self.times[frame] - self.times[0]) * self.time_base_s * self.frames_per_s)


def decode(film: Path, receivers: Mapping[str, Receiver]) -> FilmTimes:
    """Decode `film` once, and hand its pictures to `receivers` in their order:

    blocks      of each change, the mean colours of its blocks of 8 by 8 pixels (rows by columns by RGB; what is left
                over at the right and bottom edge does not count)
    strip       of each change, its picture in the film strip (Y, Cb and Cr, of full range, by rows by columns)
    thumbnails  of those changes that are more than noise (rows by columns by RGB)

    Raises EyelevelError when the film cannot be decoded; `receivers` may have had some pictures then.
    """
    log = bytearray()
    try:
        texts, counts = _decoded(film, receivers, log)
        return _times(texts, counts, log.decode(errors="replace"))
    except (ValueError, ZeroDivisionError):
        reason = last_line_of(log.decode(errors="replace"))
        raise EyelevelError(f"{film} cannot be decoded: {reason}") from None


def _decoded(
    film: Path, receivers: Mapping[str, Receiver], log: bytearray
) -> tuple[dict[str, bytearray], dict[str, int]]:
    """The times that the filters wrote, and how many pictures each of `receivers` has had; FFmpeg's output goes to
    `log`. Raises ValueError when it fails."""
    with ExitStack() as stack:
        pipes = {name: os.pipe() for name in (*receivers, *TIMES)}
        ends = {name: stack.enter_context(os.fdopen(reading, "rb", 0)) for name, (reading, _) in pipes.items()}
        numbers = {name: writing for name, (_, writing) in pipes.items()}
        try:
            process = stack.enter_context(_ffmpeg(film, receivers, numbers))
        finally:
            for writing in numbers.values():
                os.close(writing)
        texts = {name: bytearray() for name in TIMES}
        series = {name: PictureSeries(name, receiver) for name, receiver in receivers.items()}
        selector = stack.enter_context(selectors.DefaultSelector())
        assert process.stderr
        selector.register(process.stderr, selectors.EVENT_READ, log)
        for name, end in ends.items():
            selector.register(end, selectors.EVENT_READ, series.get(name) or texts[name])
        while selector.get_map():
            # The log first: it has the film's size before there are pictures.
            events = sorted(selector.select(), key=lambda event: event[0].data is not log)
            for key, _ in events:
                if isinstance(key.data, PictureSeries):
                    has_ended = not key.data.read(key.fd, log)
                else:
                    key.data.extend(data := os.read(key.fd, READ_BYTES))
                    has_ended = not data
                if has_ended:
                    selector.unregister(key.fileobj)
        if process.wait():
            raise ValueError("FFmpeg failed")
        return texts, {name: one.count for name, one in series.items()}


@contextmanager
def _ffmpeg(film: Path, outputs: Collection[str], numbers: Mapping[str, int]) -> Iterator["subprocess.Popen[bytes]"]:
    """FFmpeg decoding `film` to pipes with these `numbers` while the block runs."""
    chains = [CHANGES.format(count=len(outputs), **numbers) + "".join(f"[to_{name}]" for name in outputs)]
    chains += [f"[to_{name}]{SCALING[name].format_map(numbers)}[{name}]" for name in outputs]
    # As many films are analysed at once as there are cores, so each is decoded by one thread.
    # The preparation of the next run takes longer, so it goes first.
    command: list[str | Path] = [tool("nice"), tool("ffmpeg"), "-v", "info", "-hide_banner", "-nostdin", "-nostats"]
    command += ["-threads", "1", "-filter_complex_threads", "1", "-f", "mp4", "-i", film]
    command += ["-filter_complex", ";".join(chains)]
    for name in outputs:
        command += ["-map", f"[{name}]", "-fps_mode", "passthrough", "-pix_fmt", PIXEL_FORMATS[name]]
        command += ["-f", "rawvideo", f"pipe:{numbers[name]}"]
    with subprocess.Popen(command, pass_fds=tuple(numbers.values()), stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            # After an error: nobody reads what it writes.
            process.kill()


class PictureSeries:
    """Pictures of one kind, from a pipe to their receiver. `count`: how many it has had."""

    def __init__(self, name: str, receiver: Receiver) -> None:
        self._name, self._receiver = name, receiver
        self._shape: tuple[int, ...] = ()
        self._picture = bytearray()
        self._bytes = 0
        self.count = 0

    def read(self, descriptor: int, log: bytearray) -> bool:
        """Read what is there; returns whether there was something before the end. The film's size stands in `log`.

        Raises ValueError when a picture is not whole.
        """
        if not self._shape:
            text = log.decode(errors="replace")
            if not SIZE.search(text) and not os.read(descriptor, 1):
                return False  # FFmpeg has failed before the first picture
            self._shape = _shape(self._name, *_size(text))
        if not self._bytes:
            # A new array each time, since the receiver may keep the previous one.
            self._picture = bytearray(math.prod(self._shape))
        with memoryview(self._picture) as view:
            count = os.readv(descriptor, [view[self._bytes :]])
        self._bytes += count
        if self._bytes == len(self._picture):
            self._bytes = 0
            self.count += 1
            self._receiver(np.frombuffer(self._picture, dtype=np.uint8).reshape(self._shape))
        if not count and self._bytes:
            raise ValueError("the last picture is not whole")
        return count > 0


def _shape(name: str, width: int, height: int) -> tuple[int, ...]:
    """The lengths of the arrays of pictures of a film of this size. Raises ValueError when one is 0."""
    # FFmpeg computes the sizes like this: thumbnails in floating point, the strip's rows rounded to an even number.
    scale = min(THUMBNAIL_PIXELS / width, THUMBNAIL_PIXELS / height)
    strip_rows = (STRIP_WIDTH_PIXELS * height + width) // (2 * width) * 2
    shapes: dict[str, tuple[int, ...]] = {
        "thumbnails": (int(height * scale), int(width * scale), 3),
        "blocks": (height // BLOCK, width // BLOCK, 3),
        "strip": (3, strip_rows, STRIP_WIDTH_PIXELS),
    }
    if not all(shapes[name]):
        raise ValueError(f"a film of {width} by {height} pixels has no {name}")
    return shapes[name]


def _times(texts: Mapping[str, bytearray], counts: Mapping[str, int], log: str) -> FilmTimes:
    """The times that the filters and FFmpeg's `log` have. Raises ValueError when something is missing."""
    frames, changes, thumbnails = (TIME.findall(texts[name].decode()) for name in TIMES)
    if not changes or int(changes[-1][0]) >= len(frames):
        raise ValueError("times of frames are missing")
    for name, count in counts.items():
        if count != len(thumbnails if name == "thumbnails" else changes):
            raise ValueError(f"{count} {name}")
    width, height = _size(log)
    time_base_s, frames_per_s = (Fraction(text) for text in _groups(CLOCK, log))
    if frames_per_s < 1:
        raise ValueError(f"{frames_per_s} frames a second")
    return FilmTimes(
        width,
        height,
        frames_per_s,
        time_base_s,
        times=tuple(int(units) for _, units, _ in frames),
        changes=tuple(int(number) for number, _, _ in changes),
        # Rounded down to ms, as Browsertime's script does when it reads FFmpeg's output.
        thumbnail_times_ms=tuple(math.floor(float(time_s) * 1000) for _, _, time_s in thumbnails),
    )


def _size(log: str) -> tuple[int, int]:
    """The film's width and height in pixels. Raises ValueError."""
    width, height = _groups(SIZE, log)
    return int(width), int(height)


def _groups(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The groups of the first match of `pattern` in `text`. Raises ValueError when there is none."""
    if match := pattern.search(text):
        return match.groups()
    raise ValueError(f"nothing like {pattern.pattern}")
