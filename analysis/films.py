"""Films of a campaign for its report: the runs to show, frames at given times, and small copies for the page.

Reports without films do not load what decodes them.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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
    """The sites behind `network`, first the one whose gains in SI and PLT differ most; `gain_table` is from `gains`."""
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
    for row in of_setting.loc[distance.sort_values(kind="stable").index].to_dict("records"):
        run_folder = folder / str(row.get("folder") or "?")
        film = next((run_folder / name for name in FILMS if is_film(run_folder / name, folder)), None)
        if film:
            metrics = {name: float(row[name]) for name in metrics_in(runs)}
            return Shot(film, site, network, protocol, int(row["run"]), metrics)
    return None


def strips(shots: Sequence[Shot], count: int = STRIP_FRAMES, end_ms: float | None = None) -> list[Strip]:
    """Strips of the `shots` at the same times, which are spread evenly until `end_ms`; until all are done unless given.

    Raises EyelevelError.
    """
    end_ms = max(shot.end_ms for shot in shots) if end_ms is None else end_ms
    times = [end_ms * (place + 1) / count for place in range(count)]
    return [
        Strip(shot, tuple(times), tuple(_completeness(shot.film, times)), tuple(frames(shot.film, times)))
        for shot in shots
    ]


def frames(film: Path, times_ms: Sequence[float]) -> list[NDArray[np.uint8]]:
    """The frames of `film` at each of `times_ms` (rising) after the navigation; beyond its end, the last.

    Raises EyelevelError.
    """
    rate = min(30.0, MOST_FRAMES / max(times_ms[-1] / 1000, 1))
    numbers = [int(time_ms / 1000 * rate) for time_ms in times_ms]
    command = ["-ss", f"{zero_s(film):.4f}", "-i", str(film), "-vf", f"fps={rate}:round=up,scale={FRAME_WIDTH}:-2"]
    with tempfile.TemporaryDirectory(prefix="eyelevel-frames-") as temporary:
        _ffmpeg([*command, "-frames:v", str(numbers[-1] + 1), f"{temporary}/%06d.png"], film)
        files = sorted(Path(temporary).iterdir())
        if not files:
            raise EyelevelError(f"{film} has no frame after the navigation")
        return [_read(files[min(number, len(files) - 1)]) for number in numbers]


@cache
def zero_s(film: Path) -> float:
    """When the navigation begins in `film`, in seconds: after Browsertime's orange frames, if it has any.

    A film that was compressed has another orange; the measurement wrote down where the original one ended. It is found
    once: a clip, a strip and a copy of the film begin there, and most of their time went into it.
    """
    from films.contents import film_contents
    from films.frames import FilmStart, film_start

    recorded_start = _visual_document(film).get("start")
    if recorded_start:
        start = FilmStart(**recorded_start)
    else:
        contents = film_contents(film)
        start = film_start(contents.times, contents.looks)
    return (start.stray_frames + start.orange_frames) / _rate(film) if start.orange_frames else 0.0


def playable(shot: Shot, into: Path) -> None:
    """Write a small WebM copy of the shot's film, from the navigation on, as `into`. Raises EyelevelError."""
    picture_filter = f"fps={PLAY_RATE},scale={PLAY_WIDTH}:-2"
    length_s = shot.end_ms / 1000 + 1
    codec = ["-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "42", "-deadline", "realtime", "-cpu-used", "8", "-an"]
    section = ["-ss", f"{zero_s(shot.film):.4f}", "-t", f"{length_s:.3f}", "-i", str(shot.film)]
    _ffmpeg([*section, "-vf", picture_filter, *codec, "-metadata", "title=", str(into)], shot.film)


def progress(film: Path) -> list[tuple[float, int]]:
    """Visual completeness over time, as Browsertime's script has it: (ms from the film's zero, percent).

    The measurement's result is used where it lies beside the film. Raises EyelevelError.
    """
    if steps := _visual_document(film).get("metrics", {}).get("progress"):
        return _steps(steps)

    from films.contents import film_contents
    from films.visual_metrics import visual_metrics

    contents = film_contents(film)
    return _steps(visual_metrics(contents.times, contents.thumbnails).progress)


def _visual_document(film: Path) -> dict[str, Any]:
    """The measurement's document on `film`; empty when there is none."""
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


def _rate(film: Path) -> float:
    fields = ["-select_streams", "v:0", "-show_entries", "stream=r_frame_rate", "-of", "csv=p=0"]
    command = [str(tool("ffprobe")), "-v", "error", *fields, str(film)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    try:
        frame_count, _, seconds = output.partition("/")
        return float(frame_count) / float(seconds or 1)
    except (ValueError, ZeroDivisionError):
        raise EyelevelError(f"{film} cannot be decoded") from None


def _ffmpeg(arguments: list[str], film: Path) -> None:
    command = [str(tool("ffmpeg")), "-v", "error", "-nostdin", "-y", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EyelevelError(f"{film} cannot be decoded: {(result.stderr.strip().splitlines() or ['?'])[-1]}")


def _read(picture: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))
