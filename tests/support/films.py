"""Films as Browsertime makes them."""

import subprocess
from pathlib import Path

import numpy as np

from base.places import tool
from measure.run.film import Frame

WIDTH, HEIGHT, RATE = 320, 240, 30
ORANGE = (0xDE, 0x64, 0x0D)
WHITE = (255, 255, 255)


def frame(colour: tuple[int, int, int]) -> Frame:
    return np.full((HEIGHT, WIDTH, 3), colour, dtype=np.uint8)


def page(share: float) -> Frame:
    """A white page, the upper `share` of which is painted."""
    painted = frame(WHITE)
    painted[: int(HEIGHT * share)] = np.random.default_rng(1).integers(0, 200, (int(HEIGHT * share), WIDTH, 3))
    return painted


def film(path: Path, scenes: list[tuple[Frame, int]]) -> Path:
    """A lossless film like Browsertime's, of frames with how often each is shown."""
    size, rate = f"{WIDTH}x{HEIGHT}", str(RATE)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", size, "-r", rate, "-i", "-"]
    raw = b"".join(picture.tobytes() * count for picture, count in scenes)
    subprocess.run([*command, "-c:v", "libx264rgb", "-crf", "0", "-preset", "ultrafast", path], input=raw, check=True)
    return path
