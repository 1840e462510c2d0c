"""Estimates over sites: compared with the full mixed model and closed forms, and properties that must always hold."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from support.analysis_truth import simulated_table

from analysis import hypotheses
from analysis.samples import samples_of
from analysis.simulate import Truth
from analysis.statistics.aggregate import mixed_model, mixed_models, over_sites, two_level_interval
from analysis.statistics.contrasts import RESAMPLES
from analysis.statistics.gain import gains, summary
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array, Samples
from dataset.metrics import time_names


def ratios(sites: int, blocks: int, between: float, within: float, centre: float = -0.1) -> Array:
    draw = np.random.default_rng(3)
    return centre + draw.normal(0, between, (sites, 1)) + draw.normal(0, within, (sites, blocks))


def test_the_mixed_model_of_whole_blocks_is_the_mean_of_site_means() -> None:
    table = ratios(12, 9, 0.05, 0.05)
    model = mixed_model(table, 0.95)
    middles = table.mean(axis=1)
    assert model["mixed_gain"] == pytest.approx(np.expm1(middles.mean()), rel=1e-6)
    low, high = stats.t.interval(0.95, 11, middles.mean(), stats.sem(middles))
    assert (model["mixed_low"], model["mixed_high"]) == pytest.approx((np.expm1(low), np.expm1(high)), rel=1e-3)
    assert model["blocks"] == 108


def test_ratios_within_blocks_are_the_full_model() -> None:
    """The full model is fitted to all runs at once, with random effects of site, of site by protocol, and of block. It
    gives the same estimate and error."""
    draw = np.random.default_rng(4)
    sites, blocks = 8, 6
    site, interaction, block = (
        draw.normal(7, 0.5, sites),
        draw.normal(0, 0.06, sites),
        draw.normal(0, 0.04, (sites, blocks)),
    )
    rows = [
        (s, b, p, site[s] + p * (interaction[s] - 0.1) + block[s, b] + draw.normal(0, 0.05))
        for s in range(sites)
        for b in range(blocks)
        for p in (0, 1)
    ]
    table = pd.DataFrame(rows, columns=["site", "block", "protocol", "log_ms"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = smf.mixedlm(
            "log_ms ~ protocol", table, groups="site", re_formula="~protocol", vc_formula={"block": "0 + C(block)"}
        )
        full = model.fit(reml=True, method=["bfgs", "powell"])
    wide = table.pivot(index="site", columns=["protocol", "block"], values="log_ms")
    model = mixed_model((wide[1] - wide[0]).to_numpy(), 0.95)
    assert model["mixed_gain"] == pytest.approx(np.expm1(full.params["protocol"]), abs=1e-4)
    reach = (np.log1p(float(model["mixed_high"])) - np.log1p(float(model["mixed_low"]))) / 2
    assert reach / stats.t.ppf(0.975, sites - 1) == pytest.approx(full.bse["protocol"], rel=0.02)


def test_a_mixed_model_without_spread_between_sites_is_found() -> None:
    table = ratios(5, 40, 0, 0.05)
    table -= table.mean(axis=1, keepdims=True)
    model = mixed_model(table, 0.95)
    assert model["mixed_note"] == ""
    assert model["site_sd"] == pytest.approx(0, abs=2e-3)
    assert model["mixed_gain"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("table", "note"),
    [
        (np.zeros((4, 5)), "no variance"),
        (ratios(1, 9, 0, 0.1), "fewer than two sites"),
        (ratios(4, 1, 0, 0.1), "one block a site"),
        (np.full((3, 3), np.nan), "fewer than two sites"),
    ],
)
def test_what_no_mixed_model_can_tell_is_said(table: Array, note: str) -> None:
    model = mixed_model(table, 0.95)
    assert note in str(model["mixed_note"])
    assert np.isnan(float(model["mixed_gain"]))


def test_the_two_level_interval_of_sites_without_noise_is_near_students() -> None:
    observed = np.random.default_rng(5).normal(-0.1, 0.05, 30)
    pool = np.repeat(observed[:, None], RESAMPLES, axis=1)
    low, high = two_level_interval(observed, pool, 0.95)
    expected = stats.t.interval(0.95, 29, observed.mean(), stats.sem(observed))
    assert (low, high) == pytest.approx(expected, abs=0.004)


def test_noise_within_sites_is_not_counted_twice() -> None:
    """The spread between sites already contains the runs' noise; resampling runs as well must not widen the
    interval."""
    draw = np.random.default_rng(6)
    noise = draw.normal(0, 0.05, 30)
    pool = noise[:, None] + draw.normal(0, 0.05, (30, RESAMPLES))
    low, high = two_level_interval(noise, pool, 0.95)
    expected = stats.t.interval(0.95, 29, noise.mean(), stats.sem(noise))
    assert high - low == pytest.approx(expected[1] - expected[0], rel=0.1)


def test_one_site_has_no_interval_over_sites() -> None:
    assert np.isnan(two_level_interval(np.array([-0.1]), np.zeros((1, RESAMPLES)), 0.95)).all()


def samples(**changes: object) -> Samples:
    truth = Truth(sites=4, networks=("dsl", "lte"), runs=5, effects={"quic": -0.2}, **changes)  # type: ignore[arg-type]
    return samples_of(simulated_table(truth))


def test_aggregates_are_the_papers_means() -> None:
    table, declared = samples(), hypotheses.load()
    total = over_sites(table, declared)
    merged = summary(gains(table, declared.comparisons)).merge(total, on=["reference", "compared", "network", "metric"])
    assert len(merged) == len(total) == 8 * 2 * len(time_names())
    assert merged["gain_x"].to_numpy() == pytest.approx(merged["gain_y"].to_numpy())
    assert merged["delta_ms_x"].to_numpy() == pytest.approx(merged["delta_ms_y"].to_numpy())
    assert (merged["sites_x"] == merged["sites_y"]).all()
    assert ((total["gain_low"] < total["gain"]) & (total["gain"] < total["gain_high"])).all()


def test_exchanging_the_protocols_flips_the_sign_of_the_mixed_model() -> None:
    table = samples()
    declared = hypotheses.load()
    forward, backward = (
        mixed_models(table, replace(declared, comparisons=(pair,), family=(pair,)))
        for pair in (Pair("tcp+", "quic"), Pair("quic", "tcp+"))
    )
    forward_log, backward_log = (np.log1p(table["mixed_gain"].to_numpy()) for table in (forward, backward))
    assert forward_log == pytest.approx(-backward_log, abs=1e-6)
    assert (forward["mixed_high"] < 0).all()
