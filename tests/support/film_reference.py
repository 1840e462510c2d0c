"""The properties of a film, computed by Browsertime's own script, and by a separate decoder for each other property.

The files that a run keeps about its film (`measure.run.evidence.analyse_film`) must be the same, byte for byte.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from base.places import tool
from dataset.run_files import FILM, LAST, STRIP, VISUAL
from films.decoding import Pixels
from films.frames import is_blank, is_orange
from films.visual_metrics import visually_complete

BLOCK = 8

# A program `ffmpeg` that corrects the script's arguments: the script passes the filter's options by position, and since
# FFmpeg 6.1 another option (`keep`) has the second position.
FFMPEG_BY_NAMES = """#!{python} -IS
import os, sys
named = [part.replace("mpdecimate=0:64:640:0.001", "mpdecimate=max=0:hi=64:lo=640:frac=0.001") for part in sys.argv[1:]]
os.execv({ffmpeg!r}, [{ffmpeg!r}, *named])
"""


def keep_reference(run: Path, folder: Path) -> None:
    """Store in `folder` the files that a run keeps about its film, computed from the playable film in `folder`. The
    recorder's counts and the film's zero are taken from the folder `run`, which has the film's log."""
    known = json.loads((run / VISUAL).read_text())
    film, zero_s = folder / FILM, known["zero_s"]
    size = film_size(film)
    frames = list(reduced_frames(film, size))
    document: dict[str, Any] = {"faults": [], "size": size, "recorder": known["recorder"], "zero_s": zero_s}
    document["start"] = start_of(frames, frame_times_ms(film), zero_s)
    Image.fromarray(frames[-1]).save(folder / LAST)
    metrics = metrics_of(film)
    progress = metrics["VisualProgress"]
    document["metrics"] = {
        "fvc": float(metrics["FirstVisualChange"]),
        "lvc": float(metrics["LastVisualChange"]),
        "vc85": float(visually_complete(progress, 85)),
        "si": float(metrics["SpeedIndex"]),
        "progress": progress,
    }
    (folder / VISUAL).write_text(json.dumps(document, indent=1) + "\n")
    keep_strip(film, zero_s, document["metrics"]["lvc"], folder)


def metrics_of(film: Path) -> dict[str, Any]:
    """The visual metrics of `film` from Browsertime's script, with the arguments that Browsertime passes to it."""
    script = tool("browsertime").resolve().parents[1] / "visualmetrics" / "visualmetrics-portable.py"
    command: list[str | Path] = [
        sys.executable,
        script,
        "--video",
        film,
        "--orange",
        "--force",
        "--renderignore",
        "5",
        "--json",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        ffmpeg = Path(temporary) / "ffmpeg"
        ffmpeg.write_text(FFMPEG_BY_NAMES.format(python=sys.executable, ffmpeg=str(tool("ffmpeg"))))
        ffmpeg.chmod(0o755)
        environment = {**os.environ, "TMPDIR": temporary, "PATH": f"{temporary}:{os.environ['PATH']}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    metrics: dict[str, Any] = json.loads(done.stdout)
    return metrics


def probed(film: Path, entries: str) -> list[str]:
    """The lines that ffprobe prints about these `entries` of `film`."""
    command: list[str | Path] = [tool("ffprobe"), "-v", "error", "-select_streams", "v:0", "-show_entries", entries]
    return subprocess.run([*command, "-of", "csv=p=0", film], capture_output=True, text=True, check=True).stdout.split()


def film_size(film: Path) -> list[int]:
    """The width and height of `film` in pixels."""
    return [int(side) for side in probed(film, "stream=width,height")[0].split(",")[:2]]


def frame_times_ms(film: Path) -> list[float]:
    """The times of all frames of `film`, in ms from its first one."""
    times_s = sorted(float(line.split(",")[0]) for line in probed(film, "packet=pts_time"))
    return [round(1000 * (time_s - times_s[0]), 3) for time_s in times_s]


def start_of(frames: list[Pixels], times_ms: list[float], zero_s: float) -> dict[str, Any]:
    """How a film begins, from its `frames`, which `reduced_frames` has made."""
    orange = [place for place, frame in enumerate(frames) if is_orange(frame)]
    if not orange:
        return {"orange_ms": 0.0, "blank_ms": None, "blank_after": False}
    gone = next((place for place in range(orange[0], len(frames)) if not is_orange(frames[place])), None)
    if gone is None:
        return {"orange_ms": times_ms[-1] - times_ms[orange[0]], "blank_ms": None, "blank_after": False}
    return {
        "orange_ms": round(times_ms[gone] - times_ms[orange[0]], 3),
        "blank_ms": round(times_ms[gone] - 1000 * zero_s, 3),
        "blank_after": is_blank(frames[gone]),
    }


def reduced_frames(film: Path, size: list[int]) -> Iterator[Pixels]:
    """The frames of `film`, with one pixel for each block. `size`: the film's width and height in pixels."""
    width, height = (pixels // BLOCK for pixels in size)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-i", film]
    command += ["-vf", f"crop={width * BLOCK}:{height * BLOCK}:0:0,scale={width}:{height}:flags=area"]
    command += ["-fps_mode", "passthrough"]
    done = subprocess.run([*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    yield from np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, height, width, 3)


def whole_frames(film: Path, size: list[int]) -> Pixels:
    """All frames of `film` (frames by rows by columns by RGB)."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-i", film, "-fps_mode", "passthrough"]
    done = subprocess.run([*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, size[1], size[0], 3)


def keep_strip(film: Path, zero_s: float, lvc_ms: float, folder: Path) -> None:
    step_us = 1000 * (lvc_ms + 1) / 7
    # Without `trim`, FFmpeg would go on to scale thousands of pictures of a film in which nothing changes.
    times = f"fps=1000000/{step_us:.6f}:start_time={zero_s:.6f}:round=up,trim=end_frame=8"
    pictures = f"{times},scale=240:-2,tile=8x1,setsar=0"
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-i", film]
    subprocess.run([*command, "-vf", pictures, "-frames:v", "1", "-q:v", "5", folder / STRIP], check=True)
