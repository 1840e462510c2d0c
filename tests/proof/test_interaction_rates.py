"""How often a contrast is found to depend on the program, or not to, over campaigns with known truth: false claims,
coverage and power.

Each rate is that of whole campaigns, Holm's correction included. The results are printed. A campaign has two servers
with the same TCP, and two browsers, on two networks: twelve differences of contrasts.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.rates import tell

from analysis import hypotheses
from analysis.programs import DEPENDS, INDEPENDENT, program_differences
from analysis.runs import CampaignTable
from analysis.statistics.samples import Array, Samples
from dataset.clients import clients_of
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument

# The probability that a correct rate fails its test.
FALSE_ALARM = 1e-4
NETWORKS, BROWSERS = ("dsl", "lte"), ("chromium", "firefox")
PLACES = tuple(clients_of(NETWORKS, BROWSERS))
SERVERS = {"tcp+": ("tcp", "nginx"), "quic": ("quic", "quic_server"), "quinn-h3": ("quic", "quinn")}
METRICS = ("si", "plt")
DECLARED = hypotheses.load().restricted_to(tuple(SERVERS), METRICS)
DIFFERENCES = 12
CAMPAIGN = CampaignTable(
    pd.DataFrame(),
    CampaignDocument(
        CampaignSettings(
            networks={network: {} for network in NETWORKS},
            protocols={
                name: {"transport": transport, "server": server, "congestion_control": "cubic"}
                for name, (transport, server) in SERVERS.items()
            },
            browser={"name": "chromium"},
            further_browsers={"firefox": {}},
        )
    ),
)
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]


def lognormal(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times with 10 % of lognormal noise."""
    return np.exp(0.1 * draw.standard_normal(shape))


def heavy(draw: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Times, one in ten of which is up to several times as long: no third moment."""
    long = np.where(draw.random(shape) < 0.1, 1 + draw.pareto(2.5, shape), 1)
    return np.asarray(np.exp(0.05 * draw.standard_normal(shape)) * long)


NOISES = pytest.mark.parametrize("noise", [lognormal, heavy])


def differences(noise: Noise, draw: np.random.Generator, sites: int, blocks: int, change: float = 1.0) -> pd.DataFrame:
    """The table of a campaign in which QUIC takes on average 10 % less than TCP+, varying between sites.

    In Firefox it also takes `change` times as long, with either server.
    """
    block = np.exp(0.05 * draw.standard_normal((len(NETWORKS), sites, 1, 1, blocks)))
    block = np.concatenate([block, block])  # a block's runs share its moment in all browsers
    run = noise(draw, (len(PLACES), sites, len(SERVERS), 1, blocks))
    metric = np.exp(0.015 * draw.standard_normal((len(PLACES), sites, len(SERVERS), len(METRICS), blocks)))
    values = 1000 * block * run * metric
    values[:, :, 1:] *= np.exp(np.log(0.9) + 0.1 * draw.standard_normal((sites, 1, 1, 1)))
    # One browser is slower than the other over all protocols, which is not a dependence of the contrast.
    values[len(NETWORKS) :] *= 1.3
    values[len(NETWORKS) :, :, 1:] *= change
    samples = Samples(values, PLACES, tuple(map(str, range(sites))), tuple(SERVERS), METRICS)
    table = program_differences(CAMPAIGN, samples, DECLARED)
    assert len(table) == DIFFERENCES
    return table


def at_most(count: int, trials: int, rate: float) -> bool:
    """Whether `count` is plausible by chance at a rate of at most `rate`."""
    return bool(count <= stats.binom.isf(FALSE_ALARM, trials, rate))


@NOISES
@pytest.mark.parametrize(("sites", "blocks"), [(1, 31), (4, 5), (12, 10)])
def test_programs_that_change_nothing_are_blamed_in_one_campaign_of_a_hundred_at_most(
    noise: Noise, sites: int, blocks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    number, draw = 1000, np.random.default_rng([1, sites, blocks])
    tables = [differences(noise, draw, sites, blocks) for _ in range(number)]
    false = sum(bool((table["verdict"] == DEPENDS).any()) for table in tables)
    covered = sum(int(((table["difference_low"] <= 0) & (table["difference_high"] >= 0)).sum()) for table in tables)
    rates = (f"{false / number:.2%}", f"{covered / number / DIFFERENCES:.1%} covered")
    tell(capsys, "false dependence", noise.__name__, sites, blocks, number, *rates)
    assert at_most(false, number, DECLARED.significant_p), false / number
    # Differences of one campaign share runs, so they count as a quarter of their number.
    low = 0.93 if noise is heavy else 0.94
    assert at_most(round((number - covered / DIFFERENCES) * 3), 3 * number, 1 - low), covered / number / DIFFERENCES


@NOISES
def test_a_change_of_the_margin_is_called_none_in_one_of_a_hundred_at_most(
    noise: Noise, capsys: pytest.CaptureFixture[str]
) -> None:
    number, draw, false = 600, np.random.default_rng(2), 0
    for _ in range(number):
        table = differences(noise, draw, 12, 31, change=1.02)
        is_changed = table["varies"] == "browser"
        false += bool((table.loc[is_changed, "verdict"] == INDEPENDENT).any())
    tell(capsys, "false independence", noise.__name__, 12, 31, number, f"{false / number:.2%}")
    assert at_most(false, number, DECLARED.significant_p), false / number


@pytest.mark.parametrize(
    ("sites", "blocks", "change", "least"), [(4, 5, 1.2, 0.3), (12, 10, 1.08, 0.6), (12, 31, 1.05, 0.8)]
)
def test_a_change_that_is_there_is_found(
    sites: int, blocks: int, change: float, least: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The share of real differences between browsers that are found; between servers there are none, in either browser.

    No particular share is required: `least` is below an observed share, so that a loss of power is noticed.
    """
    number, draw, right, false = 300, np.random.default_rng([3, sites]), 0, 0
    for _ in range(number):
        table = differences(lognormal, draw, sites, blocks, change=change)
        depends, is_browser = table["verdict"] == DEPENDS, table["varies"] == "browser"
        right += int((depends & is_browser).sum())
        false += bool((depends & ~is_browser).any())
    share = right / (4 * number)
    tell(capsys, f"power at {change - 1:+.0%}", sites, blocks, number, f"{share:.1%}", f"{false / number:.2%} false")
    assert share > least
    assert at_most(false, number, DECLARED.significant_p)
