"""The properties of a film, the long way: by Browsertime's own script, and by a decoder for each other question.

The files that a run keeps of its film (`measure.run.evidence.analyse_film`) must be the same, byte for byte.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from base.places import tool
from dataset.run_files import LAST, STRIP, VISUAL
from films.decoding import Pixels
from films.frames import START_FRAMES, is_blank, is_orange
from films.visual_metrics import visually_complete

BLOCK = 8

# The script gives the filter its options by their places. Since FFmpeg 6.1 another option (`keep`) has the second.
FFMPEG_BY_NAMES = """#!{python} -IS
import os, sys
named = [part.replace("mpdecimate=0:64:640:0.001", "mpdecimate=max=0:hi=64:lo=640:frac=0.001") for part in sys.argv[1:]]
os.execv({ffmpeg!r}, [{ffmpeg!r}, *named])
"""


def keep_reference(film: Path, folder: Path) -> None:
    """Store in `folder` what a run keeps of `film`."""
    size, frames_per_s = film_form(film)
    frames = list(reduced_frames(film, size))
    document: dict[str, Any] = {"faults": [], "size": size, "frames_per_s": frames_per_s, "start": start_of(frames)}
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
    keep_strip(film, document["start"], document["metrics"]["lvc"], folder)


def metrics_of(film: Path) -> dict[str, Any]:
    """The visual metrics of `film` from Browsertime's script, with the arguments that Browsertime gives it."""
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


def film_form(film: Path) -> tuple[list[int], float]:
    """Its size in pixels, and how many frames it has a second."""
    command: list[str | Path] = [tool("ffprobe"), "-v", "error", "-select_streams", "v:0", "-of", "json"]
    command += ["-show_entries", "stream=width,height,r_frame_rate", film]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (stream,) = json.loads(done.stdout)["streams"]
    return [stream["width"], stream["height"]], float(Fraction(stream["r_frame_rate"]))


def start_of(frames: list[Pixels]) -> dict[str, Any]:
    stray, orange, blank = 0, 0, False
    for frame in frames[:START_FRAMES]:
        if is_orange(frame):
            orange += 1
        elif orange:
            blank = is_blank(frame)
            break
        else:
            stray += 1
    return {"stray_frames": stray, "orange_frames": orange, "blank_after": blank}


def reduced_frames(film: Path, size: list[int]) -> Iterator[Pixels]:
    """The frames of `film`, whose `size` is in pixels, a pixel for each block."""
    width, height = (pixels // BLOCK for pixels in size)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-i", film]
    command += ["-vf", f"crop={width * BLOCK}:{height * BLOCK}:0:0,scale={width}:{height}:flags=area"]
    done = subprocess.run([*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True)
    yield from np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, height, width, 3)


def keep_strip(film: Path, start: dict[str, Any], lvc_ms: float, folder: Path) -> None:
    zero_s = (start["stray_frames"] + start["orange_frames"]) / 30
    step_s = max(lvc_ms / 1000 / 7, 1 / 30) * (1 + 1e-6)
    pictures = f"fps=1/{step_s:.6f}:round=up,scale=240:-2,tile=8x1"
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-y", "-ss", f"{zero_s:.3f}", "-i", film]
    command += ["-t", f"{math.ceil(lvc_ms / 100) / 10 + step_s:.3f}", "-vf", pictures, "-frames:v", "1", "-q:v", "5"]
    subprocess.run([*command, folder / STRIP], check=True)
