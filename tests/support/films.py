"""Films as Browsertime makes them."""

import subprocess
from pathlib import Path

import numpy as np

from base.places import tool
from films.decoding import Pixels

WIDTH, HEIGHT, RATE = 320, 240, 30
ORANGE = (0xDE, 0x64, 0x0D)
WHITE = (255, 255, 255)
LOSSLESS = ("-c:v", "libx264rgb", "-crf", "0", "-preset", "ultrafast")


def frame(colour: tuple[int, int, int], width: int = WIDTH, height: int = HEIGHT) -> Pixels:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def page(share: float) -> Pixels:
    """A white page, the upper `share` of which is painted."""
    painted = frame(WHITE)
    painted[: int(HEIGHT * share)] = np.random.default_rng(1).integers(0, 200, (int(HEIGHT * share), WIDTH, 3))
    return painted


def film(
    path: Path, scenes: list[tuple[Pixels, int]], rate: str = str(RATE), options: tuple[str, ...] = LOSSLESS
) -> Path:
    """A lossless film like Browsertime's, of frames with how often each is shown.

    `options` of FFmpeg make another one of them.
    """
    height, width = scenes[0][0].shape[:2]
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", rate, "-i", "-"]
    raw = b"".join(picture.tobytes() * count for picture, count in scenes)
    subprocess.run([*command, *options, path], input=raw, check=True)
    return path
