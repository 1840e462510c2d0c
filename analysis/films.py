"""Films of a campaign for its report: the runs to show, frames at given times, and small copies for the page.

Reports without films do not load what decodes them.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.runs import metrics_in, rows_of
from analysis.statistics.hypotheses import Pair
from base.bounded import read_json_value
from base.errors import EyelevelError
from base.places import tool
from dataset.run_files import FILM, SMALL_FILM, VISUAL, is_film

FILMS = (FILM, SMALL_FILM)
STRIP_FRAMES = 8
FRAME_WIDTH = 320
PLAY_WIDTH, PLAY_RATE = 480, 15
# The most frames that are taken from a film: every frame of a film of a few seconds, fewer per second of a long one.
MOST_FRAMES = 240


@dataclass(frozen=True)
class Shot:
    """One run: its film, its setting and number, and its metrics (ms)."""

    film: Path
    site: str
    network: str
    protocol: str
    run: int
    metrics: dict[str, float]

    @property
    def end_ms(self) -> float:
        """When the page was done: its last visual change, or its load event if that came later."""
        return max(self.metrics[name] for name in ("lvc", "plt") if name in self.metrics)


@dataclass(frozen=True)
class Strip:
    """Frames of a run's film at `times_ms` after the navigation, and the visual completeness then, in percent."""

    shot: Shot
    times_ms: tuple[float, ...]
    complete: tuple[int, ...]
    frames: tuple[NDArray[np.uint8], ...]


def disagreement(gain_table: pd.DataFrame, network: str, pair: Pair) -> list[str]:
    """The sites on `network`, first the one whose gains in SI and PLT differ most; `gain_table` is from `gains`."""
    gains = rows_of(gain_table, network=network, **pair._asdict())
    gains = gains[gains["metric"].isin(["si", "plt"])]
    table = gains.pivot(index="site", columns="metric", values="gain").dropna()
    if table.empty or table.shape[1] < 2:
        return []
    return list((table["si"] - table["plt"]).abs().sort_values(ascending=False, kind="stable").index)


def typical(runs: pd.DataFrame, folder: Path, site: str, network: str, protocol: str) -> Shot | None:
    """The run nearest to the median SI of its setting, among the valid runs that still have their film."""
    if not {"si", "plt"} <= set(runs):
        return None
    of_setting = rows_of(runs, valid=True, site=site, network=network, protocol=protocol).dropna(subset=["si", "plt"])
    distance = (of_setting["si"] - of_setting["si"].median()).abs()
    if "folder" not in of_setting:
        return None
    for place in distance.sort_values(kind="stable").index:
        run_folder = folder / (str(of_setting.at[place, "folder"]) or "?")
        film = next((run_folder / name for name in FILMS if is_film(run_folder / name, folder)), None)
        if film:
            row = of_setting.loc[place]
            metrics = {name: float(row[name]) for name in metrics_in(runs)}
            return Shot(film, site, network, protocol, int(row["run"]), metrics)
    return None


def strips(shots: Sequence[Shot], count: int = STRIP_FRAMES, end_ms: float | None = None) -> list[Strip]:
    """Strips of the `shots`, all with frames at the same times. These are spread evenly until `end_ms`; unless that is
    given, until the pages of all shots are done. Raises EyelevelError.
    """
    end_ms = max(shot.end_ms for shot in shots) if end_ms is None else end_ms
    times = [end_ms * (place + 1) / count for place in range(count)]
    return [
        Strip(shot, tuple(times), tuple(_completeness(shot.film, times)), tuple(frames(shot.film, times)))
        for shot in shots
    ]


def frames(film: Path, times_ms: Sequence[float]) -> list[NDArray[np.uint8]]:
    """The frames of `film` at `times_ms` after the navigation; each time must be later than the one before it. Times
    after the film's end get its last frame. Raises EyelevelError.
    """
    rate = min(30.0, MOST_FRAMES / max(times_ms[-1] / 1000, 1))
    numbers = [int(time_ms / 1000 * rate) for time_ms in times_ms]
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


def playable(shot: Shot, into: Path) -> None:
    """Write a small WebM copy of the shot's film, from the navigation on, to the file `into`. Raises EyelevelError."""
    picture_filter = f"scale={PLAY_WIDTH}:-2,{from_navigation(shot.film, PLAY_RATE)}"
    length_s = shot.end_ms / 1000 + 1
    codec = ["-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "42", "-deadline", "realtime", "-cpu-used", "8", "-an"]
    section = ["-i", str(shot.film), "-t", f"{length_s:.3f}"]
    _ffmpeg([*section, "-vf", picture_filter, *codec, "-metadata", "title=", str(into)], shot.film)


def progress(film: Path) -> list[tuple[float, int]]:
    """Visual completeness over time, as the measurement computed it: (ms from navigation start, percent). Raises
    EyelevelError."""
    if steps := (_visual_document(film).get("metrics") or {}).get("progress"):
        return _steps(steps)
    raise EyelevelError(f"{film.parent / VISUAL} has no visual progress of {film.name}")


def _visual_document(film: Path) -> dict[str, Any]:
    """The document that the measurement stored about `film`; empty if there is none."""
    try:
        return dict(read_json_value(film.parent / VISUAL))
    except (OSError, ValueError, TypeError):
        return {}


def _steps(text: str) -> list[tuple[float, int]]:
    """The script's notation (`0=0, 66=20, 766=100`) as numbers."""
    pairs = (step.strip().partition("=") for step in text.split(",") if "=" in step)
    return [(float(time_ms), int(share)) for time_ms, _, share in pairs]


def _completeness(film: Path, times_ms: Sequence[float]) -> list[int]:
    steps = progress(film)
    return [next((share for at, share in reversed(steps) if at <= time_ms), 0) for time_ms in times_ms]


def _ffmpeg(arguments: list[str], film: Path) -> None:
    command = [str(tool("ffmpeg")), "-v", "error", "-nostdin", "-y", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EyelevelError(f"{film} cannot be decoded: {(result.stderr.strip().splitlines() or ['?'])[-1]}")


def _read(picture: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))
