"""The pictures of a film, from one pass of FFmpeg through it.

A page changes less often than it is filmed, so pictures are made only of frames that differ, in any pixel, from the
frame before.
"""

import math
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of

Pixels = NDArray[np.uint8]

# Of two pictures: the side of the blocks that are compared, in pixels.
BLOCK = 8
# The longer side of the thumbnails that Browsertime's script compares, in pixels.
THUMBNAIL_PIXELS = 400
STRIP_WIDTH_PIXELS = 240

# Four chains of filters. The first notes the time of every frame and lets the changes pass: `freezedetect` says of each
# frame that differs from the one before that a freeze ended; of the first frame that is added. The others scale them.
# Thumbnails are made, and left out where they are nearly alike, as Browsertime's script has it done.
CHANGE = "lavfi.freezedetect.freeze_end"
GRAPH = f"""
[0:v]showinfo@film=checksum=0,
    metadata=add:key=frame:value=0, metadata=print:key=frame:file='pipe\\:{{frame_times}}',
    freezedetect=noise=0:duration=0, metadata=add:key={CHANGE}:value=0:enable='eq(n,0)',
    metadata=print:key={CHANGE}:file='pipe\\:{{change_times}}', metadata=select:key={CHANGE}, split=3[a][b][c];
[a]scale=iw*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih):ih*min({THUMBNAIL_PIXELS}/iw\\,{THUMBNAIL_PIXELS}/ih),
    mpdecimate=max=0:hi=64:lo=640:frac=0.001,
    metadata=print:key={CHANGE}:file='pipe\\:{{thumbnail_times}}'[thumbnails];
[b]crop=iw-mod(iw\\,{BLOCK}):ih-mod(ih\\,{BLOCK}):0:0, scale=iw/{BLOCK}:ih/{BLOCK}:flags=area[blocks];
[c]scale={STRIP_WIDTH_PIXELS}:-2[strip]
"""
OUTPUTS = {"thumbnails": "rgb24", "blocks": "rgb24", "strip": "yuvj444p"}
TIMES = ("frame_times", "change_times", "thumbnail_times")

# What the filters `metadata` and `showinfo` print.
TIME = re.compile(r"^frame:(\d+) +pts:(-?\d+) +pts_time:(\S+)$", re.MULTILINE)
CLOCK = re.compile(r"\[showinfo@film @ \w+\] config in time_base: (\d+/\d+), frame_rate: (\d+/\d+)")
SIZE = re.compile(r"\[showinfo@film @ \w+\] n: *0 .* s:(\d+)x(\d+) ")


@dataclass(frozen=True)
class FilmPictures:
    """The times of a film's frames, and pictures of its changes: of the first frame, and of each that differs from the
    one before.

    `width` and `height` are in pixels. `times` are those of all frames, in units of `time_base_s`; `changes` has the
    numbers of the frames that are changes. For each change, `blocks` has the mean colours of its blocks of 8 by 8
    pixels (changes by rows by columns by RGB; what is left over at the right and bottom edge does not count), and
    `strip` has its picture in the film strip (changes by Y, Cb and Cr, of full range, by rows by columns).
    `thumbnails` (thumbnails by rows by columns by RGB) are of those changes that are more than noise, at
    `thumbnail_times_ms`.
    """

    width: int
    height: int
    frames_per_s: Fraction
    time_base_s: Fraction
    times: tuple[int, ...]
    changes: tuple[int, ...]
    blocks: Pixels
    strip: Pixels
    thumbnails: Pixels
    thumbnail_times_ms: tuple[int, ...]

    def position(self, frame: int) -> int:
        """The number that frame number `frame` would have if none before it was missing."""
        return round((self.times[frame] - self.times[0]) * self.time_base_s * self.frames_per_s)


def film_pictures(film: Path) -> FilmPictures:
    """The pictures of `film`. Raises EyelevelError when it cannot be decoded."""
    # Those of a long film may be too large for memory: they are in files beside the film, where that may be written.
    folder = film.parent if os.access(film.parent, os.W_OK) else None
    with ExitStack() as stack:
        # Without names, so that nothing is left of them, whatever ends this process.
        files = {name: stack.enter_context(tempfile.TemporaryFile(dir=folder)) for name in (*OUTPUTS, *TIMES)}
        numbers = {name: file.fileno() for name, file in files.items()}
        # As many films are analysed at once as there are cores, so each is decoded by one thread.
        command: list[str | Path] = [tool("ffmpeg"), "-v", "info", "-hide_banner", "-nostdin", "-nostats"]
        command += ["-threads", "1", "-filter_complex_threads", "1", "-f", "mp4", "-i", film]
        command += ["-filter_complex", GRAPH.format_map(numbers)]
        for name, pixel_format in OUTPUTS.items():
            command += ["-map", f"[{name}]", "-fps_mode", "passthrough", "-pix_fmt", pixel_format]
            command += ["-f", "rawvideo", f"pipe:{numbers[name]}"]
        done = subprocess.run(command, pass_fds=tuple(numbers.values()), capture_output=True, check=False)
        log = done.stderr.decode(errors="replace")
        try:
            if done.returncode:
                raise ValueError("FFmpeg failed")
            return _read(files, log)
        except (ValueError, ZeroDivisionError):
            raise EyelevelError(f"{film} cannot be decoded: {last_line_of(log)}") from None


def _read(files: Mapping[str, IO[bytes]], log: str) -> FilmPictures:
    """What FFmpeg wrote to `files` and its `log`. Raises ValueError when something is missing."""
    frames, changes, thumbnails = (_times(files[name]) for name in TIMES)
    if not changes or int(changes[-1][0]) >= len(frames):
        raise ValueError("times of frames are missing")
    width, height = (int(pixels) for pixels in _groups(SIZE, log))
    time_base_s, frames_per_s = (Fraction(text) for text in _groups(CLOCK, log))
    if frames_per_s < 1:
        raise ValueError(f"{frames_per_s} frames a second")
    # As FFmpeg computes it, in floating point.
    scale = min(THUMBNAIL_PIXELS / width, THUMBNAIL_PIXELS / height)
    return FilmPictures(
        width,
        height,
        frames_per_s,
        time_base_s,
        times=tuple(int(units) for _, units, _ in frames),
        changes=tuple(int(number) for number, _, _ in changes),
        blocks=_pixels(files["blocks"], (len(changes), height // BLOCK, width // BLOCK, 3)),
        strip=_pixels(files["strip"], (len(changes), 3, -1, STRIP_WIDTH_PIXELS)),
        thumbnails=_pixels(files["thumbnails"], (len(thumbnails), int(height * scale), int(width * scale), 3)),
        # As the script reads it from FFmpeg's output.
        thumbnail_times_ms=tuple(math.floor(float(time_s) * 1000) for _, _, time_s in thumbnails),
    )


def _times(file: IO[bytes]) -> list[tuple[str, str, str]]:
    """The frames that a filter `metadata` wrote to `file`: number, time in units of the time base, time (s)."""
    file.seek(0)
    return TIME.findall(file.read().decode())


def _pixels(file: IO[bytes], shape: tuple[int, ...]) -> Pixels:
    """The content of `file` as an array of `shape`, which may leave one length open. Raises ValueError."""
    return np.memmap(file, dtype=np.uint8, mode="r").reshape(shape)


def _groups(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The groups of the first match of `pattern` in `text`. Raises ValueError when there is none."""
    if match := pattern.search(text):
        return match.groups()
    raise ValueError(f"nothing like {pattern.pattern}")
