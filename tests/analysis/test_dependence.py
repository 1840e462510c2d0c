"""Carry-over, ratios that wander, and sittings that differ are warned, and only if they are there."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from support.worlds import PROTOCOLS, World, attempt, campaign, table_of

from analysis import hypotheses, stability
from analysis.attempts import tried_in
from analysis.report.warnings import of_carry_over, of_wandering
from analysis.runs import CampaignTable
from analysis.samples import samples_of, sittings_of

TWO = ("tcp+", "quic")
SEEDS = range(10)
STILL = World(sites=8, runs=10)
CARRIED = replace(STILL, carried={"tcp+": 0.08})


def carried(table: CampaignTable) -> pd.DataFrame:
    return stability.carry_over(table, table.metrics)


def wandering(table: CampaignTable) -> pd.DataFrame:
    declared = hypotheses.load().restricted_to(table.protocols, table.metrics)
    return stability.wandering(table, samples_of(table), declared)


@pytest.mark.slow
@pytest.mark.parametrize("protocols", [PROTOCOLS, TWO])
def test_a_world_in_which_loads_are_independent_has_hardly_a_warning(protocols: tuple[str, ...]) -> None:
    tables = [campaign(replace(STILL, protocols=protocols), seed) for seed in SEEDS]
    # A warning is in 3 and 1 of 250 campaigns each.
    assert sum(bool(of_carry_over(carried(table))) for table in tables) <= 1
    assert sum(bool(of_wandering(wandering(table))) for table in tables) == 0


@pytest.mark.slow
@pytest.mark.parametrize("protocols", [PROTOCOLS, TWO])
def test_carry_over_is_found_and_measured_even_with_two_protocols(protocols: tuple[str, ...]) -> None:
    tables = [carried(campaign(replace(CARRIED, protocols=protocols), seed)) for seed in SEEDS]
    assert sum(bool(of_carry_over(table)) for table in tables) >= 9
    warned = pd.concat(tables).query("warning != ''")
    assert set(warned["slowest"]) == {"tcp+"}
    assert warned["spread"].median() == pytest.approx(0.08, abs=0.02)
    # In random order, an error of 8 % is shared by all protocols of a block.
    assert warned["ratio_off"].median() == pytest.approx(0.08 / len(protocols), abs=0.01)


def test_the_warning_of_carry_over_says_after_which_protocol_and_how_ratios_change() -> None:
    (text,) = of_carry_over(carried(campaign(replace(CARRIED, protocols=TWO), 1)))
    assert text.startswith("Times depend on which protocol was loaded before. They do in 4 of 4 cases, most for ")
    assert "longer after TCP+ than after QUIC" in text
    assert 3 < float(text.split()[-2]) < 6, text


def test_the_load_before_is_the_attempt_before_in_the_same_lane_and_sitting() -> None:
    names = ["quic", "tcp", "tcp", "tcp+", "quic", "tcp+", "tcp"]
    runs = pd.DataFrame([
        attempt(protocol=name, run=number, at=60.0 * number, lane=lane, block=1 + number // 3)
        for number, (name, lane) in enumerate(zip(names, [1, 2, 1, 1, 2, 2, 1], strict=True))
    ])  # fmt: skip
    # A rejected attempt at the last run; after it, the campaign pauses for two hours.
    rejected = runs.iloc[[6]].assign(at=400.0, valid=False, reason="film_unclean: no", attempt=1)
    last = runs.iloc[[6]].assign(at=430.0, attempt=2)
    later = runs.iloc[[0]].assign(at=8000.0, run=9, block=9)
    table = table_of(pd.concat([runs[:6], rejected, last, later], ignore_index=True), 9)
    previous = tried_in(table).set_index("run")["previous"]
    assert previous[[2, 3, 4, 5, 6]].tolist() == ["quic", "tcp", "tcp", "quic", "tcp"]
    assert previous[[0, 1, 9]].isna().all()


@pytest.mark.parametrize("fault", ["no starts", "fixed order", "one block"])
def test_carry_over_that_cannot_be_told_from_the_rest_has_no_p_value(fault: str) -> None:
    world = replace(CARRIED, fixed=fault == "fixed order", runs=1 if fault == "one block" else 10)
    table = campaign(replace(world, sites=1) if fault == "one block" else world, 1)
    runs = table.runs.drop(columns="started_at") if fault == "no starts" else table.runs
    warned = carried(CampaignTable(runs, table.document))
    assert warned["p"].isna().all()
    assert of_carry_over(warned) == []


@cache
def wanderers() -> list[pd.DataFrame]:
    return [wandering(campaign(World(wander=0.06), seed)) for seed in SEEDS]


@pytest.mark.slow
def test_a_ratio_that_wanders_is_found() -> None:
    tables = wanderers()
    assert sum(bool(of_wandering(table)) for table in tables) >= 9
    warned = pd.concat(tables).query("warning != ''")
    assert set(warned["kind"]) == {"batches"}
    assert warned["serial"].median() > 0.2
    lengths = np.log1p(warned[["wide_high", "high"]].to_numpy()) - np.log1p(warned[["wide_low", "low"]].to_numpy())
    assert np.median(lengths[:, 0] / lengths[:, 1]) > 2


@pytest.mark.slow
def test_intervals_from_batches_hold_although_the_ratio_wanders() -> None:
    # The truth is no difference; a wander of 6 % makes most intervals from blocks miss it.
    rows = pd.concat(wanderers())
    inside, wide = ((rows[f"{kind}low"] < 0) & (rows[f"{kind}high"] > 0) for kind in ("", "wide_"))
    assert wide.mean() > inside.mean() + 0.2, (wide.mean(), inside.mean())


def test_the_warning_of_a_ratio_that_wanders_has_the_longer_intervals() -> None:
    texts = of_wandering(wandering(campaign(World(wander=0.06), 3)))
    assert len(texts) == 1
    assert texts[0].startswith(
        "The ratio of QUIC against TCP+ wanders while it is measured. It changes by more than runs "
    )
    assert "Intervals from batches of successive blocks are longer: " in texts[0]


def test_a_drift_that_both_protocols_share_is_no_wander() -> None:
    assert of_wandering(wandering(campaign(World(drift=0.3), 1))) == []


def test_sittings_that_differ_are_found_from_three_on() -> None:
    world = World(sites=6, runs=20, sittings=4, between=0.08)
    table = wandering(campaign(world, 1))
    sittings = table[table["kind"] == "sittings"]
    assert set(sittings["groups"]) == {4}
    assert (sittings["warning"] == "wanders").all()
    assert any("Intervals from sittings are longer" in text for text in of_wandering(table))
    assert (sittings["wide_low"] < sittings["low"]).all()
    still = wandering(campaign(replace(world, between=0.0), 1))
    assert (still[still["kind"] == "sittings"]["p_corrected"] > 0.01).all()
    assert set(wandering(campaign(replace(world, sittings=2), 1))["kind"]) == {"batches"}


def test_a_sitting_ends_with_a_pause_of_more_than_an_hour_or_a_recorded_start() -> None:
    minutes = [0, 59, 121, 123, 125, 180, 400]
    runs = pd.DataFrame({
        "site": "s", "network": "dsl", "protocol": "tcp", "run": range(7), "at": np.multiply(minutes, 60.0),
        "seconds": [1.0, 1, 1, 1, 1, 10800, 1], "machine": ["a~1", "a~1", "a~1", "b~2", "a", "a", "a"],
    })  # fmt: skip
    runs = table_of(runs, 7).runs
    # The pause before the last run is shorter than an hour, since the run before it took three hours.
    assert sittings_of(runs).tolist() == [1, 1, 2, 3, 4, 4, 4]
    shuffled = runs.sample(frac=1, random_state=1)
    assert sittings_of(shuffled).sort_index().tolist() == [1, 1, 2, 3, 4, 4, 4]
    assert sittings_of(runs.assign(started_at="")).tolist() == [0] * 7
    # The campaign was stopped and started again at once before its second run and before its last run.
    assert sittings_of(runs.assign(sitting=[1, 2, 2, 2, 2, 2, 3])).tolist() == [1, 2, 3, 4, 5, 5, 6]
