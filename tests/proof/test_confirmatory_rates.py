"""The declared family's error rates, over campaigns with known truth: false claims, coverage, and power at the planned
number of blocks.

Each rate is that of whole campaigns, the correction included. The results are printed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.rates import tell

from analysis import hypotheses
from analysis.statistics.confirmatory import confirmatory, without_selection
from analysis.statistics.contrast_table import verdicts
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import FASTER, SLOWER
from analysis.statistics.planning import blocks_needed
from analysis.statistics.ratios import mean_over_sites
from analysis.statistics.samples import Array, Samples
from analysis.statistics.spending import Looks, levels, looks_of_plan

# The probability that a correct rate fails its test.
FALSE_ALARM = 1e-4
# The number of values that are processed at once. They take 8 MB.
CHUNK = 2**20
FRAME_MS = 1000 / 30
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]

PAIRS = (Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr"))
PROTOCOLS = ("tcp+", "quic", "tcp+bbr", "quic+bbr")
NETWORKS = ("dsl", "lte", "da2gc", "mss")
METRICS = ("si", "plt")
DECLARED = replace(hypotheses.load(), comparisons=PAIRS, family=PAIRS, family_metrics=METRICS)
FAMILY = DECLARED.family_size(len(NETWORKS))
AUTO = looks_of_plan([31], 5, may_end=True)


def normal(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 5 % of normal noise."""
    return 1 + 0.05 * draw.standard_normal(shape)


def lognormal(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 20 % of lognormal noise."""
    return np.exp(0.2 * draw.standard_normal(shape))


def heavy(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times, one in ten of which is up to several times as long: no third moment."""
    long = np.where(draw.random(shape) < 0.1, 1 + draw.pareto(2.5, shape), 1)
    return np.exp(0.05 * draw.standard_normal(shape)) * long


def two_kinds(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 4 % of lognormal noise, one in ten of which is three times as long."""
    return np.exp(0.04 * draw.standard_normal(shape)) * np.where(draw.random(shape) < 0.1, 3, 1)


def drifting(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 5 % of noise, which become 30 % longer over the blocks."""
    return normal(draw, shape) * np.linspace(1, 1.3, shape[-1])


def lost(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 5 % of noise. A quarter of QUIC's runs and 5 % of the others are missing, at random."""
    share = np.array([0.05, 0.25, 0.05, 0.05])[:, None, None]
    return np.where(draw.random((*shape[:-2], 1, shape[-1])) < share, np.nan, normal(draw, shape))


def frames(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The times of a page of 600 ms with 4 % of normal noise, measured by a film: in whole frames, whose phase is
    random for each network and site."""
    begins_ms = draw.uniform(0, FRAME_MS, (*shape[:2], 1, 1, 1))
    times_ms = 600 * (1 + 0.04 * draw.standard_normal(shape)) + begins_ms
    return np.asarray(np.ceil(times_ms / FRAME_MS) * FRAME_MS)


NOISES = [normal, lognormal, heavy, two_kinds]


def campaigns(noise: Noise, number: int, sites: int, blocks: int, seed: int) -> Iterator[Array]:
    """`number` campaigns in which no protocol differs, each of networks x sites x protocols x metrics x blocks.

    They are yielded several at once, with the networks of one after those of another. The runs of a block share noise,
    and the metrics of a run share most of theirs; with the noise of film frames they share all.
    """
    draw = np.random.default_rng([seed, sites, blocks])
    at_once = max(1, CHUNK // (len(NETWORKS) * sites * len(PROTOCOLS) * len(METRICS) * blocks))
    for first in range(0, number, at_once):
        cells = (min(at_once, number - first) * len(NETWORKS), sites)
        block = np.exp(0.05 * draw.standard_normal((*cells, 1, 1, blocks)))
        run = noise(draw, (*cells, len(PROTOCOLS), 1, blocks))
        metric = np.exp(0.015 * draw.standard_normal((*cells, len(PROTOCOLS), len(METRICS), blocks)))
        yield block * run * (np.ones_like(metric) if noise is frames else metric)


def samples(values: Array) -> Samples:
    networks = tuple(f"{place // len(NETWORKS):05} {NETWORKS[place % len(NETWORKS)]}" for place in range(len(values)))
    return Samples(values, networks, tuple(map(str, range(values.shape[1]))), PROTOCOLS, METRICS)


def family_verdicts(values: Array, looks: Looks | None = None) -> pd.DataFrame:
    """The verdicts on all contrasts of the campaigns in `values`, each corrected within its own family."""
    table = confirmatory(samples(values), DECLARED, {}, looks)
    table[["campaign", "network"]] = table["network"].str.split(" ", expand=True)
    assert (table.groupby("campaign").size() == FAMILY).all()
    for column in ("p", "equivalence_p"):
        table[f"{column}_corrected"] = np.minimum(1, FAMILY * table[column])
    return table.assign(verdict=verdicts(table["gain"], table, DECLARED.significant_p))


def at_most(count: int, trials: int, rate: float) -> bool:
    """Whether `count` is plausible by chance at a rate of at most `rate`."""
    return bool(count <= stats.binom.isf(FALSE_ALARM, trials, rate))


def between(count: int, trials: int, low: float, high: float) -> bool:
    """Whether `count` is plausible by chance at a rate between `low` and `high`."""
    return at_most(count, trials, high) and at_most(trials - count, trials, 1 - low)


def test_campaigns_at_once_have_the_verdicts_of_one_alone() -> None:
    for values in campaigns(heavy, 3, 4, 7, seed=5):
        together = family_verdicts(values)
        for place, (_, table) in enumerate(together.groupby("campaign")):
            alone = confirmatory(samples(values[4 * place : 4 * place + 4]), DECLARED, {})
            assert np.array_equal(table["p_corrected"], alone["p_corrected"])
            assert list(table["verdict"]) == list(alone["verdict"])


@pytest.mark.parametrize("noise", [*NOISES, frames, drifting, lost])
@pytest.mark.parametrize(
    ("sites", "blocks", "number", "looks"),
    [
        (1, 31, 6000, None),
        (5, 5, 6000, None),
        (12, 10, 4000, None),
        (38, 31, 4000, None),
        (5, 31, 4000, AUTO),
        (11, 3, 4000, looks_of_plan([3], 11)),
        (5, 20, 4000, looks_of_plan([5, 10, 20], 1)),
    ],
)
def test_a_null_campaign_claims_a_difference_in_one_of_a_hundred_at_most(
    noise: Noise,
    sites: int,
    blocks: int,
    number: int,
    looks: Looks | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Equivalence takes most of the time of exchanges. Without it, no fewer contrasts are called faster or slower.
    monkeypatch.setattr("analysis.statistics.exchange.equivalence_p", lambda _ratios, _margin: 1.0)
    false = 0
    for values in campaigns(noise, number, sites, blocks, seed=1):
        table = family_verdicts(values, looks)
        false += int(table["verdict"].isin((FASTER, SLOWER)).groupby(table["campaign"]).any().sum())
    low, high = stats.binomtest(false, number).proportion_ci(0.95)
    looking = f", looks {' '.join(map(str, looks.blocks))}" if looks else ""
    rate = f"{false / number:.2%} [{low:.2%}, {high:.2%}]"
    tell(capsys, "false claim", noise.__name__, sites, f"{blocks}{looking}", number, rate)
    assert at_most(false, number, DECLARED.significant_p), false / number


@pytest.mark.parametrize("noise", [*NOISES, frames, drifting, lost])
@pytest.mark.parametrize(
    ("sites", "blocks", "number"), [(1, 31, 20000), (12, 5, 12000), (12, 31, 6000), (38, 31, 3000)]
)
def test_intervals_of_95_percent_cover_the_truth(
    noise: Noise, sites: int, blocks: int, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = np.random.default_rng([2, sites, blocks])
    truth, covered, at_once = np.log(0.9), 0, max(1, CHUNK // (sites * len(PROTOCOLS) * blocks))
    for first in range(0, number, at_once):
        times = noise(draw, (min(at_once, number - first), sites, len(PROTOCOLS), 1, blocks))
        reference, compared = np.moveaxis(np.log(times[:, :, :2, 0]), 2, 0)
        low, high = mean_over_sites(truth + compared - reference).interval(0.95)
        covered += int(((low <= truth) & (truth <= high)).sum())
    tell(capsys, "coverage", noise.__name__, sites, blocks, number, f"{covered / number:.2%}")
    assert between(covered, number, 0.935, 0.97), covered / number


@pytest.mark.parametrize(
    ("noise", "sites", "column"),
    [
        (normal, 2, "blocks_5pct"),
        (normal, 12, "blocks_2pct"),
        (lognormal, 2, "blocks_20pct"),
        (lognormal, 38, "blocks_5pct"),
        (heavy, 12, "blocks_2pct"),
    ],
)
def test_the_planned_number_of_blocks_has_the_planned_power(
    noise: Noise, sites: int, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The number is planned from campaigns of 31 blocks. Then one contrast of sixteen has the difference, and the
    number of blocks must suffice to find it."""
    plans = [
        blocks_needed(samples(values[first : first + len(NETWORKS)]), DECLARED)
        for values in campaigns(noise, 10, sites, 31, seed=3)
        for first in range(0, len(values), len(NETWORKS))
    ]
    needed = round(float(pd.concat(plans)[column].median()))
    gain, number, slower = int(column.removeprefix("blocks_").removesuffix("pct")) / 100, 3000, 0
    for values in campaigns(noise, number, sites, needed, seed=4):
        values[:: len(NETWORKS), :, 1, 0] *= 1 + gain
        table = family_verdicts(values, looks_of_plan([needed], sites))
        is_there = (table["network"] == NETWORKS[0]) & (table["compared"] == "quic") & (table["metric"] == METRICS[0])
        # A difference within the margin is shown all the same, though its verdict is *equivalent*.
        is_shown = (table["p_corrected"] < DECLARED.significant_p) & (table["gain"] > 0)
        slower += int(is_shown[is_there].sum())
    tell(capsys, f"power at +{gain:.0%}", noise.__name__, sites, needed, number, f"{slower / number:.2%}")
    assert between(slower, number, 0.88, 0.94), slower / number


@pytest.mark.parametrize(("sites", "truth"), [(1, -0.05), (3, -0.03), (3, -0.05), (12, -0.02), (12, -0.03), (12, -0.1)])
def test_after_early_stopping_intervals_hold_and_shrunken_gains_are_nearer_the_truth(
    sites: int, truth: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """One contrast of a family, with 10 % of noise. Its network is measured until this contrast is decided.

    The more campaigns end early, the less the end selects, and the less there is to correct.
    """
    number, draw, centre = 4000, np.random.default_rng([7, sites]), np.log1p(truth)
    ratios = centre + 0.1 * np.sqrt(2) * draw.standard_normal((number, sites, AUTO.blocks[-1]))
    level = 2 * np.array(levels(AUTO.blocks, AUTO.planned, DECLARED.significant_p / FAMILY / 2))
    at_looks = [mean_over_sites(ratios[..., :look]) for look in AUTO.blocks]
    p = np.stack([test.difference_p() for test in at_looks])
    # Each campaign stops at the first look that decides the contrast, otherwise at the last look.
    is_decided = p < level[:, None]
    stop = np.where(is_decided.any(axis=0), is_decided.argmax(axis=0), len(level) - 1)

    def at_stop(values: Sequence[Array]) -> Array:
        return np.asarray(np.stack(values)[stop, np.arange(number)])

    errors = levels(AUTO.blocks, AUTO.planned, (1 - DECLARED.confidence) / 2)
    ends = [test.interval(1 - 2 * error) for test, error in zip(at_looks, errors, strict=True)]
    low, high = at_stop([end[0] for end in ends]), at_stop([end[1] for end in ends])
    covered = int(((low <= centre) & (centre <= high)).sum())
    estimates, last_p = pd.Series(at_stop([test.centre for test in at_looks])), pd.Series(at_stop(list(p)))
    shrunken = without_selection(estimates, last_p, pd.Series(level[stop]))
    is_early = stop < len(level) - 1
    means = [np.expm1(values[is_early].mean()) for values in (estimates, shrunken)]
    off = [np.sqrt(((values[is_early] - centre) ** 2).mean()) for values in (estimates, shrunken)]
    texts = (f"{covered / number:.1%}", f"{is_early.mean():.0%}", *(f"{mean:+.1%}" for mean in means))
    tell(capsys, "stopping", sites, f"{truth:+.0%}", number, *texts)
    assert between(covered, number, DECLARED.confidence, 1)
    if is_early.mean() < 0.5:
        assert off[1] < (0.7 if is_early.mean() < 0.25 else 0.85) * off[0]
    assert off[1] < abs(centre)
