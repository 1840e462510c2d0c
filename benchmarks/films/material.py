"""Films such as Browsertime makes of pages: of a page that paints in steps, and of one that never stops moving."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from base.places import tool
from browsers.window import DESKTOP
from tuning.defaults import FRAMERATE

SECONDS = 6
ORANGE_FRAMES, BLANK_FRAMES = 9, 20
# A page that paints does so in as many steps, one in every so many frames.
STEPS, STEP_FRAMES = 12, 5


def make_film(name: str, path: Path) -> Path:
    """Make the film "painting" or "moving", as large and as long as one of a small page, without loss."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{DESKTOP.width}x{DESKTOP.height}", "-r", str(FRAMERATE), "-i", "-"]
    # As Browsertime records.
    command += ["-c:v", "libx264rgb", "-crf", "0", "-preset", "ultrafast", "-f", "mp4", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin
        for picture in _pictures(moving=name == "moving"):
            process.stdin.write(picture.tobytes())
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return path


def _pictures(*, moving: bool) -> Iterator[NDArray[np.uint8]]:
    """The film's frames (rows by columns by RGB)."""
    orange = np.full((DESKTOP.height, DESKTOP.width, 3), (0xDE, 0x64, 0x0D), dtype=np.uint8)
    yield from [orange] * ORANGE_FRAMES
    picture = np.full_like(orange, 255)
    yield from [picture] * BLANK_FRAMES
    painted = np.random.default_rng(1).integers(0, 200, picture.shape, dtype=np.uint8)
    for number in range(FRAMERATE * SECONDS - ORANGE_FRAMES - BLANK_FRAMES):
        if moving:
            # A banner that slides over the page's middle.
            picture[200:500] = np.roll(painted[200:500], 5 * number, axis=1)
        elif number % STEP_FRAMES == 0:
            rows = DESKTOP.height * min(number // STEP_FRAMES + 1, STEPS) // STEPS
            picture[:rows] = painted[:rows]
        yield picture
