"""Visual metrics of loads that the recorder and FFmpeg film together."""

import json
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
from scipy import stats

from base.places import tool
from benchmarks.films.loads import BOTH, FFMPEG_FILM, load
from benchmarks.films.text import table
from dataset.run_files import VISUAL

PAGES = ("demo-news", "demo-light", "demo-gallery")
NETWORKS = ("dsl", "lte")
# A metric's name → its name in the output of Browsertime's script.
METRICS = {"fvc": "FirstVisualChange", "lvc": "LastVisualChange", "si": "SpeedIndex"}
# Larger differences are listed: more than two of FFmpeg's frames.
OUTLIER_MS = 67


def agreement_table(folder: Path, loads: int) -> str:
    """A row for each metric: the mean difference between both films, with its 95 % interval. Lines below the table list
    differences of more than two frames."""
    differences: dict[str, list[float]] = {name: [] for name in METRICS}
    blank_ms, outliers = [], []
    for number in range(loads):
        site, network = PAGES[number % len(PAGES)], NETWORKS[number // len(PAGES) % len(NETWORKS)]
        one = load(site, network, BOTH, folder / str(number))
        document = json.loads((one.folder / VISUAL).read_text())
        theirs = script_metrics(one.folder / FFMPEG_FILM)
        # The script counts from the first frame after the orange.
        blank_ms.append(document["start"]["blank_ms"])
        for name, script_name in METRICS.items():
            differences[name].append(document["metrics"][name] - blank_ms[-1] - theirs[script_name])
            if abs(differences[name][-1]) > OUTLIER_MS:
                outliers.append(f"load {number} of {site} on {network}: {name} {differences[name][-1]:+.0f} ms")
        click.echo(f"load {number + 1} of {loads}", err=True)
    rows = [[name, *_interval(each)] for name, each in differences.items()]
    shift = f"orange to blank, from navigation start: {np.mean(blank_ms):+.1f} (sd {np.std(blank_ms):.1f})"
    text = table(["metric", "mean", "95 % interval", "standard deviation"], rows)
    return "\n".join([text, shift, "goal: within 10 ms", *outliers])


def script_metrics(film: Path) -> dict[str, float]:
    """The metrics of `film` from Browsertime's script, with the arguments that Browsertime passes to it."""
    script = tool("browsertime").resolve().parents[1] / "visualmetrics" / "visualmetrics-portable.py"
    command: list[str | Path] = [sys.executable, script, "--video", film, "--orange", "--force", "--renderignore", "5"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    metrics: dict[str, float] = json.loads(done.stdout)
    return metrics


def _interval(values: list[float]) -> list[str]:
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    mean = float(np.mean(values))
    return [f"{mean:+.1f}", f"{mean - half:+.1f} to {mean + half:+.1f}", f"{np.std(values):.1f}"]
