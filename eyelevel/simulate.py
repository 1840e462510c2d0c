"""Writes the folder of a simulated campaign with known effects, for tests of the analysis and for planning.

It shows, for example, how a campaign with a given number of runs would look if QUIC were 5 % faster.
"""

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.hypotheses import DECLARED
from base.errors import EyelevelError
from base.files import write_atomically
from dataset.declaration import declaration, keep_hypotheses
from dataset.metrics import time_names
from dataset.settings import CampaignSettings
from dataset.table import RUNS, CampaignDocument, columns, write_document
from eyelevel.defaults import NOISES
from tuning import networks, protocols

# A page's metrics as multiples of its Speed Index; a metric that is not listed equals the Speed Index.
SHAPE = {"fvc": 0.6, "lvc": 1.9, "vc85": 1.2, "si": 1.0, "plt": 1.7}
SCALE_MS = {"dsl": 900.0, "lte": 1500.0, "da2gc": 16000.0, "mss": 14000.0}
BEGUN_AT = "2026-01-01T00:00:00+0000"


@dataclass(frozen=True)
class Truth:
    """The parameters of a simulated campaign. Shares are of the time; standard deviations are of ln(time).

    `effects`: protocol → how much its times differ from the others' on average over sites (-0.05: 5 % less);
    `effect_sd`: how much that varies between sites. `noise`: the distribution of a run's noise: normal, lognormal, or
    heavy (lognormal, but one run in ten takes up to several times as long). `block_sd`: the noise that a block's runs
    share. `drift`: the growth of times from the first run to the last. `excluded`: protocol → the share of its attempts
    that do not count. `seed`: the seed of all random numbers. `runs_seed`: if given, the seed of the runs' noise, so
    that two campaigns with one `seed` measure the same pages and protocols twice.
    """

    sites: int = 38
    networks: tuple[str, ...] = ("dsl", "lte", "da2gc", "mss")
    protocols: tuple[str, ...] = ("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr")
    runs: int = 31
    effects: Mapping[str, float] = field(default_factory=dict)
    effect_sd: float = 0.0
    noise: str = "lognormal"
    noise_sd: float = 0.05
    block_sd: float = 0.02
    drift: float = 0.0
    excluded: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1
    runs_seed: int | None = None


def simulate(truth: Truth) -> pd.DataFrame:
    """The attempts of a campaign in which `truth` holds: the columns of `runs.csv`, in the order of measuring."""
    draw = np.random.default_rng(truth.seed)
    shape = (truth.runs, truth.sites, len(truth.networks), len(truth.protocols))
    sites = [f"site-{number:02}" for number in range(1, truth.sites + 1)]
    page = draw.normal(0, 0.6, truth.sites)[None, :, None, None]
    scale = np.log([SCALE_MS.get(name, 2000.0) for name in truth.networks])[None, None, :, None]
    effect = np.log1p([truth.effects.get(name, 0.0) for name in truth.protocols])[None, None, None, :]
    effect = effect + draw.normal(0, truth.effect_sd, (1, *shape[1:])) * (effect != 0)
    noise_seed = truth.seed if truth.runs_seed is None else truth.runs_seed
    draw = draw if truth.runs_seed is None else np.random.default_rng(noise_seed)
    block = draw.normal(0, truth.block_sd, (*shape[:3], 1))
    total = int(np.prod(shape))
    at = np.arange(total).reshape(shape) / max(1, total - 1)
    common = page + scale + effect + block + np.log1p(truth.drift) * at
    index = pd.MultiIndex.from_product(
        [range(1, truth.runs + 1), sites, truth.networks, truth.protocols], names=["run", "site", "network", "protocol"]
    )
    runs = pd.DataFrame(index=index).reset_index()
    # Most of a run's noise is common to all its metrics.
    run_noise = _noise(draw, truth, shape)
    for metric in time_names():
        # Each metric has its own random numbers, so that a new metric changes nothing else.
        own_draw = np.random.default_rng([noise_seed, zlib.crc32(metric.encode())])
        metric_noise = np.exp(own_draw.normal(0, truth.noise_sd / 3, shape))
        level = np.exp(common) * SHAPE.get(metric, 1.0)
        runs[metric] = np.maximum(1, level * run_noise * metric_noise).ravel().round(1)
    runs["valid"] = draw.random(len(runs)) >= runs["protocol"].map(truth.excluded).fillna(0).to_numpy(dtype=float)
    runs["reason"] = np.where(runs["valid"], "", "load_finished: simulated as one that did not")
    # The protocols of a block follow each other in random order.
    within = draw.permuted(np.broadcast_to(np.arange(shape[3]), shape), axis=-1).ravel()
    runs = runs.assign(block=np.arange(len(runs)) // shape[3], within=within)
    runs = runs.sort_values(["block", "within"], ignore_index=True)
    start_times = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(len(runs)) * 12, unit="s")
    folder = runs["site"] + "/" + runs["network"] + "/" + runs["protocol"] + "/" + runs["run"].astype(str)
    runs = runs.assign(
        attempt=1, requests=50, served=50, missed=0, exchanges=50, unrecorded=0, seconds=11.5,
        started_at=start_times.strftime("%Y-%m-%dT%H:%M:%S+0000"), folder="runs/" + folder + "-1",
    )  # fmt: skip
    return runs[[name for name in columns() if name in runs and name != "block"]]


def _noise(draw: np.random.Generator, truth: Truth, shape: tuple[int, ...]) -> np.ndarray:
    """A factor for every run, with a mean of about 1."""
    if truth.noise == "normal":
        return np.maximum(0.05, draw.normal(1, truth.noise_sd, shape))
    body = np.exp(draw.normal(0, truth.noise_sd, shape))
    if truth.noise == "heavy":
        body *= np.where(draw.random(shape) < 0.1, 1 + draw.pareto(2.5, shape), 1)
    return body


def write(folder: Path, truth: Truth, hypotheses: Path = DECLARED) -> Path:
    """Write the campaign as `folder` (`campaign.json`, `hypotheses.toml`, `runs.csv`; no films), with `hypotheses` as
    its declared ones, and return the folder. Raises EyelevelError."""
    if truth.noise not in NOISES:
        raise EyelevelError(f"the noise {truth.noise} is unknown; it can be {', '.join(NOISES)}")
    all_networks, all_protocols, text = networks.load(), protocols.load(), hypotheses.read_text()
    document = CampaignDocument(
        settings=CampaignSettings(
            seed=truth.seed,
            runs=truth.runs,
            sites={f"site-{number:02}": {} for number in range(1, truth.sites + 1)},
            networks={name: asdict(all_networks[name]) if name in all_networks else {} for name in truth.networks},
            protocols={name: asdict(all_protocols[name]) if name in all_protocols else {} for name in truth.protocols},
        ),
        begun_at=BEGUN_AT,
        hypotheses=declaration(text, CampaignSettings(runs=truth.runs)) | {"declared_at": BEGUN_AT},
        further={"simulated": asdict(truth)},
    )
    folder.mkdir(parents=True, exist_ok=True)
    runs = simulate(truth)
    table = runs.assign(valid=np.where(runs["valid"], "true", "false")).to_csv(index=False)
    keep_hypotheses(folder, text)
    write_document(folder, document)
    write_atomically(folder / RUNS, table)
    return folder
