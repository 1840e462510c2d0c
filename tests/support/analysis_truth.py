"""Simulated samples with known truth, and how often the statistics are right about them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.analyses import analyse
from analysis.findings import Findings
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import Array, t_test_p
from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from eyelevel.simulate import Truth, simulate

# The probability that a correct statistic fails its test.
FALSE_ALARM = 1e-5
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]


def normal(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Factors of mean 1 with 5 % of normal noise."""
    return 1 + draw.normal(0, 0.05, shape)


def lognormal(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Factors with 20 % of lognormal noise."""
    return np.exp(draw.normal(0, 0.2, shape))


def heavy(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Factors, one in ten of which is up to several times as large: a tail without a third moment."""
    return np.exp(draw.normal(0, 0.05, shape)) * np.where(draw.random(shape) < 0.1, 1 + draw.pareto(2.5, shape), 1)


def drifting(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Factors with 5 % of noise that grow by 30 % from the first block to the last."""
    return normal(draw, shape) * np.linspace(1, 1.3, shape[-1])


def two_samples(noise: Noise, cells: int, runs: int, effect: float, seed: int) -> tuple[Array, Array]:
    """Times of two protocols (cells x runs each); the second takes 1 + `effect` times as long."""
    draw = np.random.default_rng(seed)
    return 1000 * noise(draw, (cells, runs)), 1000 * (1 + effect) * noise(draw, (cells, runs))


def consistent(successes: int, trials: int, rate: float, slack: float = 0.0) -> bool:
    """Whether this number of successes is plausible by chance at `rate`, give or take `slack`."""
    low = stats.binom.ppf(FALSE_ALARM, trials, max(rate - slack, 0))
    high = stats.binom.ppf(1 - FALSE_ALARM, trials, min(rate + slack, 1))
    return bool(low <= successes <= high)


def false_positives(noise: Noise, cells: int, runs: int, level: float, seed: int) -> dict[str, int]:
    """How often each test finds a difference at `level` although there is none."""
    a, b = two_samples(noise, cells, runs, 0, seed)
    p_values = {
        "anova": t_test_p(a, b, equal_var=True),
        "welch": t_test_p(a, b, equal_var=False),
        "blocks": mean_over_sites(np.log(b / a)[:, None]).difference_p(),
    }
    return {name: int((p < level).sum()) for name, p in p_values.items()}


def campaign_table(runs: pd.DataFrame, networks: Sequence[str], protocols: Sequence[str]) -> CampaignTable:
    """A campaign with these attempts, and its networks and protocols in this order."""
    settings: dict[str, Any] = {
        "sites": {},
        "networks": {name: {} for name in networks},
        "protocols": {name: {} for name in protocols},
    }
    return CampaignTable(runs, CampaignDocument(structured(settings, CampaignSettings, "")))


def simulated_table(truth: Truth) -> CampaignTable:
    """A simulated campaign."""
    return campaign_table(simulate(truth), truth.networks, truth.protocols)


def same_campaigns(truth: Truth, number: int) -> tuple[CampaignTable, CampaignTable]:
    """Two campaigns that measure the same pages and protocols, according to `truth`, and differ only by their runs'
    noise.

    Each `number` gives another pair.
    """
    runs_seeds = (1_000_000 + 2 * number, 1_000_001 + 2 * number)
    one, other = (simulated_table(replace(truth, seed=number, runs_seed=seed)) for seed in runs_seeds)
    return one, other


def with_canary(runs: pd.DataFrame) -> pd.DataFrame:
    """`runs` with the times of a canary that nothing changes."""
    return runs.assign(canary_ms=np.random.default_rng(1).normal(100, 1, len(runs)))


# A campaign with material for each analysis and figure: one network with an RTT and one without, lost runs, and
# a protocol that is the double of another.
VARIED = Truth(
    sites=4,
    networks=("dsl", "lte"),
    protocols=("tcp", "tcp+", "quic", "again"),
    runs=6,
    effect_sd=0.05,
    excluded={"quic": 0.1},
)


def varied_findings(declaration: Hypotheses) -> Findings:
    """The findings in VARIED, with a canary, under the hypotheses of `declaration`."""
    doubles = {"again": "tcp"}
    protocols = {name: {"name": name, "tuning": doubles.get(name, name)} for name in VARIED.protocols}
    settings = {"sites": {}, "networks": {"dsl": {"min_rtt_ms": 24.0}, "lte": {}}, "protocols": protocols}
    with ThreadPoolExecutor() as pool:
        return analyse(
            CampaignTable(with_canary(simulate(VARIED)), CampaignDocument(structured(settings, CampaignSettings, ""))),
            declaration,
            pool,
        )
