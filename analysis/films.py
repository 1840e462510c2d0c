"""Films of a campaign for its report: which runs to show, their frames at given times, and small copies that play."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.hypotheses import Pair
from base.errors import EyelevelError
from base.places import tool
from measure.run.evidence import VISUAL
from measure.run.film import FilmStart, film_start, visual_metrics
from measure.run.films import FILM, SMALL_FILM

FILMS = (FILM, SMALL_FILM)
STRIP_FRAMES = 8
FRAME_WIDTH = 320
PLAY_WIDTH, PLAY_RATE = 480, 15
# How finely a film's frames are looked through: every frame of one of a few seconds, fewer of a long one.
MOST_FRAMES = 240


@dataclass(frozen=True)
class Shot:
    """One run to be shown: its film, what setting it is of, and its metrics (ms)."""

    film: Path
    site: str
    network: str
    protocol: str
    run: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Strip:
    """Frames of a run's film at `times_ms` after the navigation, and how complete the page then was, in percent."""

    shot: Shot
    times_ms: tuple[float, ...]
    complete: tuple[int, ...]
    frames: tuple[NDArray[np.uint8], ...]


def disagreement(gained: pd.DataFrame, network: str, pair: Pair) -> list[str]:
    """The sites behind `network`, the one whose gains in SI and PLT differ most first; from what `gains` returns."""
    own = gained[
        (gained["network"] == network)
        & (gained["reference"] == pair.reference)
        & (gained["compared"] == pair.compared)
        & gained["metric"].isin(["si", "plt"])
    ]
    table = own.pivot(index="site", columns="metric", values="gain").dropna()
    if table.empty or table.shape[1] < 2:
        return []
    return list((table["si"] - table["plt"]).abs().sort_values(ascending=False, kind="stable").index)


def typical(runs: pd.DataFrame, folder: Path, site: str, network: str, protocol: str) -> Shot | None:
    """Of the valid runs of a setting that still have their film, the one nearest to the setting's median SI."""
    own = runs[
        runs["valid"] & (runs["site"] == site) & (runs["network"] == network) & (runs["protocol"] == protocol)
    ].dropna(subset=["si", "plt"])
    off = (own["si"] - own["si"].median()).abs()
    for row in own.loc[off.sort_values(kind="stable").index].to_dict("records"):
        of_run = folder / str(row.get("folder") or "?")
        film = next((of_run / name for name in FILMS if (of_run / name).exists()), None)
        if film:
            metrics = {name: float(row[name]) for name in ("fvc", "vc85", "si", "lvc", "plt")}
            return Shot(film, site, network, protocol, int(row["run"]), metrics)
    return None


def strips(shots: Sequence[Shot], count: int = STRIP_FRAMES) -> list[Strip]:
    """Strips of the `shots` at the same times, evenly up to when the last of them is done. Raises EyelevelError."""
    end = max(max(shot.metrics["lvc"], shot.metrics["plt"]) for shot in shots)
    times = [end * (place + 1) / count for place in range(count)]
    return [
        Strip(shot, tuple(times), tuple(_complete(shot.film, times)), tuple(frames(shot.film, times))) for shot in shots
    ]


def frames(film: Path, times_ms: Sequence[float]) -> list[NDArray[np.uint8]]:
    """What `film` shows at each of `times_ms` (rising) after its zero; beyond its end, the last.

    Raises EyelevelError.
    """
    rate = min(30.0, MOST_FRAMES / max(times_ms[-1] / 1000, 1))
    wanted = [int(time_ms / 1000 * rate) for time_ms in times_ms]
    command = ["-ss", f"{zero_s(film):.4f}", "-i", str(film), "-vf", f"fps={rate}:round=up,scale={FRAME_WIDTH}:-2"]
    with tempfile.TemporaryDirectory(prefix="eyelevel-frames-") as temporary:
        _ffmpeg([*command, "-frames:v", str(wanted[-1] + 1), f"{temporary}/%06d.png"], film)
        there = sorted(Path(temporary).iterdir())
        if not there:
            raise EyelevelError(f"{film} has no frame after the navigation")
        return [_read(there[min(place, len(there) - 1)]) for place in wanted]


def zero_s(film: Path) -> float:
    """Where in `film` the navigation begins, in seconds: after Browsertime's orange, if it has that.

    A film that was made smaller has another orange; the measurement has noted where the first ended.
    """
    noted = _seen(film).get("start")
    start = FilmStart(**noted) if noted else film_start(film)
    return (start.stray_frames + start.orange_frames) / _rate(film) if start.orange_frames else 0.0


def playable(shot: Shot, into: Path) -> None:
    """Write a small WebM copy of the shot's film, from the navigation on, as `into`. Raises EyelevelError."""
    scaled = f"fps={PLAY_RATE},scale={PLAY_WIDTH}:-2"
    last = max(shot.metrics["lvc"], shot.metrics["plt"]) / 1000 + 1
    coded = ["-c:v", "libvpx-vp9", "-b:v", "0", "-crf", "42", "-deadline", "realtime", "-cpu-used", "8", "-an"]
    at = ["-ss", f"{zero_s(shot.film):.4f}", "-t", f"{last:.3f}", "-i", str(shot.film)]
    _ffmpeg([*at, "-vf", scaled, *coded, "-metadata", "title=", str(into)], shot.film)


def progress(film: Path) -> list[tuple[float, int]]:
    """How complete the page is over time: (ms from the film's zero, percent), as Browsertime's own script tells it.

    Taken from beside the film where the measurement has kept it. Raises EyelevelError.
    """
    kept = _seen(film).get("metrics", {}).get("progress")
    return _steps(kept or visual_metrics(film).progress)


def _seen(film: Path) -> dict[str, Any]:
    """What the measurement has noted of `film`."""
    try:
        return dict(json.loads((film.parent / VISUAL).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def _steps(told: str) -> list[tuple[float, int]]:
    """The script's notation (`0=0, 66=20, 766=100`) as numbers."""
    pairs = (step.strip().partition("=") for step in told.split(",") if "=" in step)
    return [(float(time_ms), int(share)) for time_ms, _, share in pairs]


def _complete(film: Path, times_ms: Sequence[float]) -> list[int]:
    steps = progress(film)
    return [next((share for at, share in reversed(steps) if at <= time_ms), 0) for time_ms in times_ms]


def _rate(film: Path) -> float:
    fields = ["-select_streams", "v:0", "-show_entries", "stream=r_frame_rate", "-of", "csv=p=0"]
    command = [str(tool("ffprobe")), "-v", "error", *fields, str(film)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    try:
        frames_told, _, seconds = told.partition("/")
        return float(frames_told) / float(seconds or 1)
    except (ValueError, ZeroDivisionError):
        raise EyelevelError(f"{film} cannot be decoded") from None


def _ffmpeg(arguments: list[str], film: Path) -> None:
    command = [str(tool("ffmpeg")), "-v", "error", "-nostdin", "-y", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EyelevelError(f"{film} cannot be decoded: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


def _read(picture: Path) -> NDArray[np.uint8]:
    from PIL import Image

    with Image.open(picture) as image:
        return np.asarray(image.convert("RGB"))
