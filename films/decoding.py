"""A film's pictures, from one pass through its log.

`film-recorder stream` makes a picture of each change, and FFmpeg scales the pictures for each purpose. It makes
thumbnails in the same way as it does for Browsertime's script. The pictures come through pipes, and each is passed to
its receiver at once. So only what receivers keep takes more space when a film has more pictures.
"""

import math
import os
import re
import selectors
import subprocess
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of
from films.log import FilmLog

Pixels = NDArray[np.uint8]
Receiver = Callable[[Pixels], None]

# The side of the blocks in which two pictures are compared, in pixels.
BLOCK = 8
# The longer side of the thumbnails that Browsertime's script compares, in pixels.
THUMBNAIL_PIXELS = 400
STRIP_WIDTH_PIXELS = 240

# The pixel format is that of a lossless film, so that a log and its lossless film are scaled alike. Each frame gets
# some metadata, since the filter that prints the times leaves out frames without metadata.
CHANGES = "[0:v]format=gbrp, metadata=add:key=change:value=0, split={count}"
# The filters that scale the changes, by the name of their output. As for Browsertime's script, a thumbnail that hardly
# differs from the one before is left out.
SCALING = {
    "thumbnails": f"""
    scale=iw*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih):ih*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih),
    mpdecimate=max=0:hi=64:lo=640:frac=0.001,
    metadata=print:key=change:file='pipe\\:{{thumbnail_times}}'""",
    "blocks": f"""
    crop=iw-mod(iw\\,{BLOCK}):ih-mod(ih\\,{BLOCK}):0:0, scale=iw/{BLOCK}:ih/{BLOCK}:flags=area""",
    "strip": f"""
    scale={STRIP_WIDTH_PIXELS}:-2""",
    "pictures": "null",
}
PIXEL_FORMATS = {"thumbnails": "rgb24", "blocks": "rgb24", "strip": "yuvj444p", "pictures": "rgb24"}
TIMES = "thumbnail_times"
READ_BYTES = 1 << 16
# The output of the filter `metadata`: the time in µs since the first picture.
TIME = re.compile(r"^frame:\d+ +pts:(\d+) +pts_time:\S+$", re.MULTILINE)


def decode(film: Path, log: FilmLog, receivers: Mapping[str, Receiver]) -> tuple[int, ...]:
    """Decode `film`, whose log is `log`, once. Each of `receivers` gets its kind of pictures, in their order:

    blocks      for each change, the mean colours of the picture's blocks of 8 by 8 pixels (rows by columns by RGB;
                pixels at the right and bottom edge that fill no block do not count)
    strip       for each change, its picture in the film strip (Y, Cb and Cr, of full range, by rows by columns)
    thumbnails  for each change that is more than noise, a small picture (rows by columns by RGB)
    pictures    for each change, the whole screen (rows by columns by RGB)

    Returns the numbers of the changes that have thumbnails. Raises EyelevelError when the film cannot be decoded;
    `receivers` may have got some pictures by then.
    """
    messages = bytearray()
    try:
        text, counts = _decoded(film, log, receivers, messages)
        offsets_us = [time_us - log.times_us[0] for time_us in log.times_us]
        thumbnails = tuple(bisect_left(offsets_us, int(time_us)) for time_us in TIME.findall(text.decode()))
        for name, count in counts.items():
            if count != len(thumbnails if name == "thumbnails" else offsets_us):
                raise ValueError(f"{count} {name}")
        return thumbnails
    except ValueError as error:
        reason = last_line_of(messages.decode(errors="replace"), str(error))
        raise EyelevelError(f"the film {film} cannot be decoded: {reason}") from None


def last_picture(film: Path, log: FilmLog) -> Pixels:
    """The last picture of `film` (rows by columns by RGB), which shows the page's final look. Raises EyelevelError."""
    last: list[Pixels] = []

    def keep(picture: Pixels) -> None:
        last[:] = [picture]

    decode(film, log, {"pictures": keep})
    return last[0]


def _decoded(
    film: Path, log: FilmLog, receivers: Mapping[str, Receiver], messages: bytearray
) -> tuple[bytearray, dict[str, int]]:
    """The times of the thumbnails as the filter printed them, and the number of pictures that each of `receivers` got.
    The programs' error messages go to `messages`. Raises ValueError when a program fails."""
    with ExitStack() as stack:
        pipes = {name: os.pipe() for name in (*receivers, TIMES)}
        ends = {name: stack.enter_context(os.fdopen(reading, "rb", 0)) for name, (reading, _) in pipes.items()}
        numbers = {name: writing for name, (_, writing) in pipes.items()}
        try:
            recorder, scaler = stack.enter_context(_programs(film, receivers, numbers))
        finally:
            for writing in numbers.values():
                os.close(writing)
        series = {name: PictureSeries(receiver, *_shape(name, log)) for name, receiver in receivers.items()}
        times = bytearray()
        selector = stack.enter_context(selectors.DefaultSelector())
        assert recorder.stderr and scaler.stderr
        # The recorder's messages are added last: if both programs fail, its last line has the cause.
        selector.register(scaler.stderr, selectors.EVENT_READ, messages)
        for name, end in ends.items():
            selector.register(end, selectors.EVENT_READ, series.get(name, times))
        while selector.get_map():
            for key, _ in selector.select():
                if isinstance(key.data, PictureSeries):
                    has_ended = not key.data.read(key.fd)
                else:
                    key.data.extend(data := os.read(key.fd, READ_BYTES))
                    has_ended = not data
                if has_ended:
                    selector.unregister(key.fileobj)
        messages.extend(recorder.stderr.read())
        if recorder.wait() or scaler.wait():
            raise ValueError("a program failed")
        return times, {name: one.count for name, one in series.items()}


@contextmanager
def _programs(
    film: Path, outputs: Collection[str], numbers: Mapping[str, int]
) -> Iterator[tuple["subprocess.Popen[bytes]", "subprocess.Popen[bytes]"]]:
    """The processes of the recorder, which streams `film`, and of FFmpeg, which scales it, while the block runs.
    `numbers`: the descriptor of each output's pipe."""
    chains = [CHANGES.format(count=len(outputs)) + "".join(f"[to_{name}]" for name in outputs)]
    chains += [f"[to_{name}]{SCALING[name].format_map(numbers)}[{name}]" for name in outputs]
    # As many films are analysed at once as there are cores, so one thread scales each film. The scaling has a low
    # priority (nice), so that it does not delay the preparation of the next run, which takes longer.
    scaling: list[str | Path] = [tool("nice"), tool("ffmpeg"), "-v", "error", "-hide_banner", "-nostdin", "-nostats"]
    scaling += ["-threads", "1", "-filter_complex_threads", "1", "-f", "matroska", "-i", "-"]
    scaling += ["-filter_complex", ";".join(chains)]
    for name in outputs:
        scaling += ["-map", f"[{name}]", "-fps_mode", "passthrough", "-pix_fmt", PIXEL_FORMATS[name]]
        scaling += ["-f", "rawvideo", f"pipe:{numbers[name]}"]
    with (
        streamed(film, nice=True) as recorder,
        subprocess.Popen(
            scaling, stdin=recorder.stdout, pass_fds=tuple(numbers.values()), stderr=subprocess.PIPE
        ) as scaler,
    ):
        assert recorder.stdout
        recorder.stdout.close()  # the recorder learns of FFmpeg's end
        try:
            yield recorder, scaler
        finally:
            # If there was an error, FFmpeg still runs, and nobody reads its output.
            scaler.kill()


@contextmanager
def streamed(film: Path, *options: str, nice: bool = False) -> Iterator["subprocess.Popen[bytes]"]:
    """The process that writes `film` as Matroska, with a picture for each change, while the block runs."""
    command: list[str | Path] = [*([tool("nice")] if nice else []), tool("film-recorder"), "stream", *options, film]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


class PictureSeries:
    """Reads the pictures of one kind, arrays of this `shape`, from a pipe, and passes them to their receiver. `count`
    is the number of pictures so far."""

    def __init__(self, receiver: Receiver, *shape: int) -> None:
        self._receiver = receiver
        self._shape = shape
        self._picture = bytearray()
        self._bytes = 0
        self.count = 0

    def read(self, descriptor: int) -> bool:
        """Read the bytes that have come; returns False at the end of the pipe. Raises ValueError when the pipe ends
        within a picture."""
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


def _shape(name: str, log: FilmLog) -> tuple[int, ...]:
    """The shape of the arrays for this kind of picture. Raises ValueError when one of its lengths is 0."""
    # FFmpeg computes sizes in the same way: those of thumbnails in floating point, and the rows of the strip rounded to
    # an even number.
    width, height = log.width, log.height
    scale = min(THUMBNAIL_PIXELS / width, THUMBNAIL_PIXELS / height)
    strip_rows = (STRIP_WIDTH_PIXELS * height + width) // (2 * width) * 2
    shapes: dict[str, tuple[int, ...]] = {
        "thumbnails": (int(height * scale), int(width * scale), 3),
        "blocks": (height // BLOCK, width // BLOCK, 3),
        "strip": (3, strip_rows, STRIP_WIDTH_PIXELS),
        "pictures": (height, width, 3),
    }
    if not all(shapes[name]):
        raise ValueError(f"a film of {width} by {height} pixels has no {name}")
    return shapes[name]
