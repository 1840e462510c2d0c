"""The effect of filming on a page: filmed loads against loads without a film, in randomised blocks."""

import random
from pathlib import Path

import click
import numpy as np
from scipy import stats

from benchmarks.films.loads import NONE, RECORDER, load
from benchmarks.films.text import table

PAGES, NETWORKS = ("demo-news", "demo-light"), ("dsl", "lte")
METRICS = {"PLT": ("pageTimings", "pageLoadTime"), "FCP": ("paintTiming", "first-contentful-paint")}
LEVEL = 0.90


def effects_table(folder: Path, blocks: int) -> str:
    """A row for each page, network and metric, and one for each metric over all pages and networks: the change of the
    geometric mean by filming, with its 90 % interval."""
    draw = random.Random(1)
    logs: dict[tuple[str, str, str], list[float]] = {}
    for block in range(blocks):
        for site, network in [(site, network) for network in NETWORKS for site in PAGES]:
            ways = [RECORDER, NONE]
            draw.shuffle(ways)
            times = {way: _times(site, network, way, folder / f"{block}-{site}-{network}-{way}") for way in ways}
            for metric in METRICS:
                ratio = np.log(times[RECORDER][metric] / times[NONE][metric])
                logs.setdefault((site, network, metric), []).append(ratio)
        click.echo(f"block {block + 1} of {blocks}", err=True)
    rows = [[*key, *_interval(ratios)] for key, ratios in logs.items()]
    for metric in METRICS:
        # The mean of a block over pages and networks is one observation.
        pooled = np.mean([ratios for key, ratios in logs.items() if key[2] == metric], axis=0)
        rows.append(["all", "all", metric, *_interval(list(pooled))])
    return f"{table(['page', 'network', 'metric', 'change', '90 % interval'], rows)}\ngoal of all: within 2 %"


def _times(site: str, network: str, way: str, folder: Path) -> dict[str, float]:
    (scripts,) = load(site, network, way, folder).evidence.page["browserScripts"]
    return {name: float(scripts["timings"][group][key]) for name, (group, key) in METRICS.items()}


def _interval(logs: list[float]) -> list[str]:
    mean = float(np.mean(logs))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(logs) - 1) * stats.sem(logs)) if len(logs) > 1 else float("nan")
    low, high = (100 * np.expm1(mean + side * half) for side in (-1, 1))
    return [f"{100 * np.expm1(mean):+.1f} %", f"{low:+.1f} to {high:+.1f} %"]
