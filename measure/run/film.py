"""What a film shows, and when: the visual metrics, and whether the film can be trusted to have them right.

A film begins with some frames of orange; with the navigation the orange makes place for a blank page, and
that frame is the film's zero (up to two frames of the screen, 33 ms, before the page's own navigation
start; the same for all).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of

Frame = NDArray[np.uint8]

# Browsertime's orange, and how far a colour may be off it (the film is lossless, the screen has 24 bits).
ORANGE = np.array([0xDE, 0x64, 0x0D], dtype=np.int16)
TOLERANCE = 4
ORANGE_SHARE = 0.99
# The orange lasts for about a third of a second; a film that still shows it after this many frames is broken.
START_FRAMES = 150
# How far back from its end a film is decoded for its last frame; several frames at any rate it has.
LAST_S = 0.5
# Of two pictures: the side of the blocks that are compared, in pixels, and how far their colours (0 to 255)
# may be apart unseen.
BLOCK = 8
VISIBLE = 8


@dataclass(frozen=True)
class VisualMetrics:
    """Times in ms from the film's zero, and Speed Index (ms), as Browsertime's own script computes them.

    `progress` is how complete the page was when, in the script's notation (see `visually_complete`).
    """

    fvc: float
    lvc: float
    vc85: float
    si: float
    progress: str = ""


@dataclass(frozen=True)
class FilmStart:
    """How a film begins: frames before the orange, frames of orange, and how the frame after those looks."""

    stray_frames: int
    orange_frames: int
    blank_after: bool


def visual_metrics(film: Path) -> VisualMetrics:
    """The visual metrics of `film`. Raises EyelevelError when they cannot be computed."""
    script = tool("browsertime").resolve().parents[1] / "visualmetrics" / "visualmetrics-portable.py"
    # The arguments are those that Browsertime gives it.
    command: list[str | Path] = [sys.executable, script, "--video", film, "--orange", "--force"]
    command += ["--renderignore", "5", "--json"]
    # Beside the film, where what a killed process leaves is swept up with the rest of a broken attempt.
    with tempfile.TemporaryDirectory(dir=film.parent, prefix=".metrics-") as temporary:
        # As many are analysed at once as there are cores.
        environment = {**os.environ, "TMPDIR": temporary, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    try:
        metrics = json.loads(done.stdout)
        return VisualMetrics(
            fvc=float(metrics["FirstVisualChange"]),
            lvc=float(metrics["LastVisualChange"]),
            vc85=float(visually_complete(metrics["VisualProgress"], 85)),
            si=float(metrics["SpeedIndex"]),
            progress=str(metrics["VisualProgress"]),
        )
    except (ValueError, KeyError, TypeError):
        last = last_line_of(done.stderr, "it said nothing")
        raise EyelevelError(f"no visual metrics from {film}: {last}") from None


def visually_complete(progress: str, percent: int) -> int:
    """When the page reached `percent` of its final look and never again fell below it, in ms.

    `progress` is the script's own notation: `0=0, 66=20, 766=100`.
    """
    reached = None
    for step in progress.split(","):
        time_ms, _, share = step.strip().partition("=")
        if int(share) < percent:
            reached = None
        elif reached is None:
            reached = int(time_ms)
    if reached is None:
        raise ValueError(f"the page never became {percent} % complete")
    return reached


def film_start(film: Path) -> FilmStart:
    """Look at how `film` begins. Raises EyelevelError when it cannot be decoded."""
    stray, orange = 0, 0
    for frame in _frames(film, START_FRAMES, reduced=True):
        if is_orange(frame):
            orange += 1
        elif orange:
            return FilmStart(stray, orange, blank_after=is_blank(frame))
        else:
            stray += 1
    return FilmStart(stray, orange, blank_after=False)


def last_frame(film: Path, *, reduced: bool = False) -> Frame:
    """The last frame of `film`, in which the page has its final look, or its blocks (see `blocks`), rounded.

    Raises EyelevelError.
    """
    frames = list(_frames(film, last_s=LAST_S, reduced=reduced))
    if not frames:
        raise EyelevelError(f"{film} has no last frame that can be decoded")
    return frames[-1]


def unlike(one: Frame, other: Frame) -> float:
    """The share of two pictures (0 to 1) in which a person could see a difference.

    That is the share of 8 by 8 pixel blocks whose mean colours differ by more than `VISIBLE`; pictures of
    different sizes differ everywhere.
    """
    if one.shape != other.shape:
        return 1.0
    return unlike_blocks(blocks(one), blocks(other))


def unlike_blocks(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The same of two pictures of which only the blocks' mean colours are known (see `blocks`)."""
    if one.shape != other.shape:
        return 1.0
    # Differences of bytes need no more than 16 bits.
    kind = np.int16 if one.dtype == other.dtype == np.uint8 else np.float64
    is_visible = np.abs(one.astype(kind) - other.astype(kind)) > VISIBLE
    # The colours one by one: numpy is slow along an axis of three.
    return float((is_visible[..., 0] | is_visible[..., 1] | is_visible[..., 2]).mean())


def blocks(frame: Frame) -> NDArray[np.float64]:
    """The mean colour of each block of `frame`; what is left over at its right and bottom edge does not count."""
    height, width = (size // BLOCK * BLOCK for size in frame.shape[:2])
    cut = frame[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3)
    return np.asarray(cut.mean(axis=(1, 3)))


def is_orange(frame: Frame) -> bool:
    """Whether `frame` is Browsertime's orange, but for a blended last row or column of a scaled page."""
    close = (np.abs(frame.astype(np.int16) - ORANGE) <= TOLERANCE).all(axis=2)
    return bool(close.mean() > ORANGE_SHARE)


def is_blank(frame: Frame) -> bool:
    """Whether all of `frame` has one colour: nothing left of the orange, nothing yet of the page."""
    pixels = frame.reshape(-1, 3)
    return bool((pixels.max(axis=0) - pixels.min(axis=0) <= TOLERANCE).all())


def _frames(
    film: Path, count: int | None = None, last_s: float | None = None, *, reduced: bool = False
) -> Iterator[Frame]:
    """Frames of `film` as arrays of height by width by RGB: the first `count`, or those of its last seconds.

    `reduced` to a pixel for each block (see `blocks`), which is a tenth of the work.
    """
    width, height = film_size(film)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin"]
    command += [] if last_s is None else ["-sseof", f"-{last_s:g}"]
    command += ["-i", film, *([] if count is None else ["-frames:v", str(count)])]
    if reduced:
        width, height = width // BLOCK, height // BLOCK
        command += ["-vf", f"crop={width * BLOCK}:{height * BLOCK}:0:0,scale={width}:{height}:flags=area"]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    with subprocess.Popen([*command, *raw], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            while len(data := process.stdout.read(width * height * 3)) == width * height * 3:
                yield np.frombuffer(data, dtype=np.uint8).reshape(height, width, 3)
        finally:
            process.kill()


def film_size(film: Path) -> tuple[int, int]:
    """The width and height of `film` in pixels. Raises EyelevelError when it cannot be decoded."""
    return _size(film, film.stat().st_mtime_ns) if film.exists() else _size(film, 0)


@lru_cache(maxsize=64)
def _size(film: Path, changed_ns: int) -> tuple[int, int]:
    """`film_size` of the film as it was at `changed_ns`."""
    command: list[str | Path] = [tool("ffprobe"), "-v", "error", "-select_streams", "v:0", "-of", "json"]
    done = subprocess.run(
        [*command, "-show_entries", "stream=width,height", film], capture_output=True, text=True, check=False
    )
    try:
        stream: dict[str, Any] = json.loads(done.stdout)["streams"][0]
        return stream["width"], stream["height"]
    except (ValueError, KeyError, IndexError):
        raise EyelevelError(f"{film} cannot be decoded: {done.stderr.strip() or 'it has no picture'}") from None
