"""Diagnostics of a campaign's stability report a change, and only if there is one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.analysis_truth import consistent
from support.worlds import World, attempt, campaign, table_of

from analysis import hypotheses, stability
from analysis.report.warnings import of_stability
from analysis.runs import CampaignTable
from analysis.samples import samples_of

SMALL = World(sites=5, runs=8)


def tables(table: CampaignTable) -> list[pd.DataFrame]:
    declared = hypotheses.load().restricted_to(table.protocols, table.metrics)
    blocks = stability.block_means(table)
    return [
        stability.halves(samples_of(table), declared),
        stability.drift(blocks, declared.confidence),
        stability.steps(table, blocks),
    ]


def texts(table: CampaignTable) -> list[str]:
    halves, drift, steps = tables(table)
    return of_stability(halves, drift, steps)


@pytest.mark.slow
def test_a_world_that_stands_still_has_hardly_a_warning() -> None:
    worlds = (SMALL, replace(SMALL, heavy=True), replace(SMALL, scatter=0.2, blocks=0.06))
    alarms = [texts(campaign(world, seed)) for world in worlds for seed in range(8)]
    # Each campaign has three tables, and each table a false alarm rate of ALARM_P.
    assert consistent(sum(map(bool, alarms)), len(alarms), 3 * stability.ALARM_P), alarms


@pytest.mark.slow
def test_drift_is_found_and_measured() -> None:
    for seed in range(5):
        halves, drift, _ = tables(campaign(replace(SMALL, drift=0.3), seed))
        assert (drift["warning"] == "drifts").all()
        assert drift["drift"].to_numpy() == pytest.approx(0.3, abs=0.12)
        # Half of the drift lies between the middles of both halves; ratios within blocks do not contain it.
        times = halves[halves["kind"] == "time"]
        assert times["change"].mean() == pytest.approx(np.sqrt(1.3) - 1, abs=0.06)
        assert (halves.loc[halves["kind"] == "ratio", "warning"] == "").all()


def test_a_ratio_that_changes_is_found() -> None:
    table = campaign(World(sites=8, runs=10), 1)
    is_late = (table.runs["run"] > 5) & (table.runs["protocol"] == "quic")
    runs = table.runs.assign(si=table.runs["si"] * np.where(is_late, 1.2, 1))
    halves = tables(CampaignTable(runs, table.document))[0]
    ratios = halves[(halves["kind"] == "ratio") & (halves["metric"] == "si")]
    assert ratios["change"].to_numpy() == pytest.approx(0.2, abs=0.05)
    assert (ratios["warning"] == "changes").all()
    assert (halves.loc[halves["metric"] == "plt", "warning"] == "").all()


def test_a_change_that_is_small_is_no_warning_however_sure() -> None:
    table = campaign(World(sites=8, runs=20, scatter=0.005, blocks=0.005, drift=0.02), 1)
    drift = tables(table)[1]
    assert (drift["drift_p"] < 1e-6).all()
    assert texts(table) == []


def test_neighbours_that_are_alike_are_found() -> None:
    draw = np.random.default_rng(5)
    blocks = pd.DataFrame({"network": "dsl", "site": [f"s{number % 6}" for number in range(300)]})
    walk = np.zeros(300)
    for place in range(1, 300):
        walk[place] = 0.6 * walk[place - 1] + draw.normal(0, 0.05)
    row = stability.drift(blocks.assign(off_si=walk), 0.95).iloc[0]
    assert row["serial"] == pytest.approx(0.6, abs=0.12) and row["serial_p"] < 1e-6
    assert "neighbours are alike" in row["warning"]
    assert "neighbours" not in stability.drift(blocks.assign(off_si=draw.permuted(walk)), 0.95).iloc[0]["warning"]


@pytest.mark.slow
def test_p_values_do_not_grow_with_the_runs_of_a_block() -> None:
    """The runs of a block share its scatter: treated as independent, they showed drift in one null campaign of five.

    With blocks of many runs, a few campaigns show this.
    """
    world = replace(SMALL, blocks=0.1, scatter=0.01, protocols=tuple("abcdefghi"))
    p = [stability.drift(stability.block_means(campaign(world, seed)), 0.95)["drift_p"][0] for seed in range(8)]
    assert_uniform(np.array(p))


def test_p_values_without_a_drift_are_neither_too_small_nor_too_large() -> None:
    """Found in 99.9 % of attempts if the error of the slope were 1.4 times too large, or as much too small."""
    _, networks, sites = (axis.ravel() for axis in np.indices((8, 2, 5)))
    cells = pd.DataFrame({"network": networks, "site": sites})
    # Networks scatter unequally.
    off = np.random.default_rng(3).normal(0, 1 + 2 * networks, (150, len(cells))).T
    blocks = cells.join(pd.DataFrame(off).add_prefix("off_"))
    assert_uniform(stability.drift(blocks, 0.95)["drift_p"].to_numpy())


def assert_uniform(p: np.ndarray) -> None:
    """The values are as scattered as p values without an effect; all together, neither smaller nor larger."""
    squares = stats.norm.isf(p / 2) ** 2
    assert 1e-3 < stats.chi2.sf(squares.sum(), len(squares)) < 1 - 1e-3


def test_a_place_that_matters_and_a_slow_machine_are_found() -> None:
    table = campaign(World(sites=8, runs=10), 1)
    order = table.runs.sort_values("started_at").groupby("block").cumcount().sort_index()
    last = table.runs.assign(si=table.runs["si"] * np.where(order == 2, 1.1, 1))
    steps = tables(CampaignTable(last, table.document))[2].set_index(["factor", "metric"])
    assert steps.loc[("place", "si"), "spread"] == pytest.approx(0.1, abs=0.03)
    assert steps.loc[("place", "si"), "warning"] == "depends on the place"
    assert steps.loc[("place", "plt"), "warning"] == ""
    machine = np.random.default_rng(1).permutation(np.arange(2000) % 2)[table.runs["block"]]
    slow = table.runs.assign(machine=np.where(machine, "a", "b"), si=table.runs["si"] * np.where(machine, 1.1, 1))
    steps = tables(CampaignTable(slow, table.document))[2].set_index(["factor", "metric"])
    assert steps.loc[("machine", "si"), "spread"] == pytest.approx(0.1, abs=0.03)
    assert steps.loc[("machine", "si"), "warning"] == "depends on the machine"
    assert steps.loc[("machine", "plt"), "warning"] == ""


def test_a_slow_lane_is_found_and_no_lane_is_no_factor() -> None:
    table = campaign(World(sites=8, runs=10), 1)
    second = np.random.default_rng(1).permutation(np.arange(2000) % 2)[table.runs["block"]]
    slow = table.runs.assign(lane=1 + second, machine="a", si=table.runs["si"] * np.where(second, 1.1, 1))
    steps = tables(CampaignTable(slow, table.document))[2].set_index(["factor", "metric"])
    assert steps.loc[("lane", "si"), "spread"] == pytest.approx(0.1, abs=0.03)
    assert steps.loc[("lane", "si"), "warning"] == "depends on the lane"
    assert steps.loc[("lane", "plt"), "warning"] == ""
    assert any("Times depend on the lane" in text for text in texts(CampaignTable(slow, table.document)))
    without = tables(CampaignTable(table.runs.assign(lane=0), table.document))[2]
    assert "lane" not in set(without["factor"])


def test_times_that_depend_on_concurrent_loads_are_found() -> None:
    table = campaign(World(sites=8, runs=10), 1)
    loads = np.random.default_rng(1).uniform(1, 6, len(table.runs))
    slow = table.runs.assign(concurrent_loads=loads, si=table.runs["si"] * 1.1 ** ((loads - 1) / 5))
    steps = tables(CampaignTable(slow, table.document))[2].set_index(["factor", "metric"])
    assert steps.loc[("concurrent_loads", "si"), "spread"] == pytest.approx(0.1, abs=0.03)
    assert steps.loc[("concurrent_loads", "si"), "warning"] == "depends on the concurrent_loads"
    assert steps.loc[("concurrent_loads", "plt"), "warning"] == ""
    assert any(
        "Times depend on the number of concurrent loads" in text for text in texts(CampaignTable(slow, table.document))
    )
    for without in (table.runs, table.runs.assign(concurrent_loads=1.0)):
        assert "concurrent_loads" not in set(tables(CampaignTable(without, table.document))[2]["factor"])


@pytest.mark.slow
@given(st.integers(0, 10_000), st.floats(0.1, 10))
@settings(max_examples=5)
def test_units_do_not_matter(seed: int, factor: float) -> None:
    table = campaign(World(sites=2, runs=4), seed)
    scaled = CampaignTable(table.runs.assign(si=table.runs["si"] * factor), table.document)
    for one, other in zip(tables(table), tables(scaled), strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("sites", [1, 2])
def test_the_smallest_campaigns_are_told_without_a_warning(sites: int, runs: int) -> None:
    assert texts(campaign(World(sites=sites, runs=runs), 1)) == []


def test_equal_times_and_one_protocol_alone() -> None:
    rows = [attempt(run=run, block=run, at=run) for run in range(1, 9)]
    assert texts(table_of(pd.DataFrame(rows), 8)) == []
