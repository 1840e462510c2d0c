"""Reads the films that a campaign keeps: their pictures and visual completeness at given times, and small copies.

Times are from the navigation. Reports without films do not load what decodes them.
"""

import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from base.bounded import read_json_value
from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of
from dataset.run_files import FILM, SMALL_FILM, VISUAL, is_film

FRAME_WIDTH = 320
PLAY_WIDTH, PLAY_RATE = 480, 15
# The most frames that are taken from a film: every frame of a film of a few seconds, fewer per second of a long one.
MOST_FRAMES = 240


def film_of(run_folder: Path, campaign: Path) -> Path | None:
    """The film that the `campaign` keeps of the run in `run_folder`; None if it keeps none."""
    return next((film for name in (FILM, SMALL_FILM) if is_film(film := run_folder / name, campaign)), None)


def frames(film: Path, times_ms: Sequence[float]) -> list[NDArray[np.uint8]]:
    """The frames of `film` at `times_ms` after the navigation; each time must be later than the one before it. Times
    after the film's end get its last frame. Times in round steps get the frame of exactly that time, others one of up
    to 33 ms (in long films more) before. Raises EyelevelError.
    """
    rate = min(30.0, MOST_FRAMES / max(times_ms[-1] / 1000, 1))
    if (step_ms := math.gcd(*map(round, times_ms))) and all(time_ms % 1 == 0 for time_ms in times_ms):
        rate = min(rate, 1000 / step_ms)
    numbers = [int(time_ms * rate / 1000 + 1e-6) for time_ms in times_ms]
    command = ["-i", str(film), "-vf", f"scale={FRAME_WIDTH}:-2,{from_navigation(film, rate)}"]
    with tempfile.TemporaryDirectory(prefix="eyelevel-frames-") as temporary:
        _ffmpeg([*command, "-frames:v", str(numbers[-1] + 1), f"{temporary}/%06d.png"], film)
        files = sorted(Path(temporary).iterdir())
        if not files:
            raise EyelevelError(f"{film} has no frame after the navigation")
        return [_read(files[min(number, len(files) - 1)]) for number in numbers]


def from_navigation(film: Path, rate: float) -> str:
    """FFmpeg's filters that give `film`, which has no constant rate, `rate` frames a second from the navigation on. No
    frame comes before its time. Raises EyelevelError."""
    return f"fps={rate:g}:start_time={zero_s(film):.6f}:round=up,setpts=PTS-STARTPTS"


def zero_s(film: Path) -> float:
    """When the navigation begins in `film`, in seconds: the measurement has stored this next to the film. Raises
    EyelevelError."""
    try:
        return float(_visual_document(film)["zero_s"])
    except (LookupError, TypeError, ValueError):
        raise EyelevelError(
            f"{film.parent / VISUAL} does not say when the page of {film.name} was navigated to"
        ) from None


def small_copy(film: Path, length_s: float) -> bytes:
    """A small WebM copy of the first seconds of `film` from the navigation on. Raises EyelevelError."""
    picture_filter = f"scale={PLAY_WIDTH}:-2,{from_navigation(film, PLAY_RATE)}"
    codec = ["-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "42", "-deadline", "realtime", "-cpu-used", "8", "-an"]
    section = ["-i", str(film), "-t", f"{length_s:.3f}"]
    with tempfile.TemporaryDirectory(prefix="eyelevel-film-") as folder:
        copy = Path(folder) / "film.webm"
        _ffmpeg([*section, "-vf", picture_filter, *codec, "-metadata", "title=", str(copy)], film)
        return copy.read_bytes()


def progress(film: Path) -> list[tuple[float, int]]:
    """Visual completeness over time, as the measurement computed it: (ms from navigation start, percent). Raises
    EyelevelError."""
    # The script's notation is `0=0, 66=20, 766=100`.
    steps = (_visual_document(film).get("metrics") or {}).get("progress")
    if not steps:
        raise EyelevelError(f"{film.parent / VISUAL} has no visual progress of {film.name}")
    pairs = (step.partition("=") for step in steps.split(",") if "=" in step)
    return [(float(time_ms), int(share)) for time_ms, _, share in pairs]


def completeness(film: Path, times_ms: Sequence[float]) -> list[int]:
    """Visual completeness at `times_ms`, in percent. Raises EyelevelError."""
    steps = progress(film)
    return [next((share for at, share in reversed(steps) if at <= time_ms), 0) for time_ms in times_ms]


def _visual_document(film: Path) -> dict[str, Any]:
    """The document that the measurement stored about `film`; empty if there is none."""
    try:
        return dict(read_json_value(film.parent / VISUAL))
    except (OSError, ValueError, TypeError):
        return {}


def _ffmpeg(arguments: list[str], film: Path) -> None:
    command = [str(tool("ffmpeg")), "-v", "error", "-nostdin", "-y", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EyelevelError(f"{film} cannot be decoded: {last_line_of(result.stderr)}")


def _read(picture: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))
