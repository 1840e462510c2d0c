"""Lost runs are reported and tested, and cannot flatter a protocol."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.analysis_truth import consistent
from support.first_screens import findings_of
from support.worlds import World, attempt, campaign, table_of

from analysis import hypotheses, losses
from analysis.attempts import tried_runs
from analysis.report.sections.summary import answer
from analysis.report.warnings import of_losses
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT
from analysis.text import percent


def declared(table: CampaignTable) -> Hypotheses:
    return hypotheses.load().restricted_to(table.protocols, table.metrics)


def bounds_of(table: CampaignTable, hypotheses: Hypotheses) -> pd.DataFrame:
    verdicts = confirmatory(samples_of(table), hypotheses, table.rtt_ms, networks=table.networks)
    return losses.bounds(table, hypotheses, verdicts)


def campaign_with(lost: dict[str, int], tried: int) -> CampaignTable:
    """One site with this many runs over each protocol, and this many lost ones."""
    rows = [
        attempt(protocol=name, run=run, block=run, at=run, reason="load_failed: no" if run <= number else "")
        for name, number in lost.items()
        for run in range(1, tried + 1)
    ]
    return table_of(pd.DataFrame(rows), tried)


def guilty(table: CampaignTable) -> list[str]:
    rates = losses.success_rates(table)
    return list(rates.loc[rates["warning"] != "", "protocol"])


def test_success_is_of_runs_not_of_attempts() -> None:
    lost = {"reason": "load_failed: no"}
    rows = [attempt(run=1, **lost), attempt(run=1, attempt=2, at=1), attempt(run=2), attempt(run=3, **lost)]
    rates = losses.success_rates(table_of(pd.DataFrame(rows), 4)).set_index("protocol").loc["tcp"]
    assert rates[["planned", "tried", "valid", "lost", "attempts", "load", "film"]].tolist() == [4, 3, 2, 2, 4, 2, 0]
    assert rates["success"] == pytest.approx(2 / 3)


def test_losses_are_compared_within_blocks() -> None:
    rates = losses.success_rates(campaign_with({"tcp": 3, "tcp+": 6, "quic": 20}, 372)).set_index("protocol")
    # Blocks 1 to 3 lost the runs of all three protocols, blocks 4 to 6 those of TCP+ and QUIC, and blocks 7 to 20 only
    # that of QUIC.
    assert rates.loc["quic", "p"] == pytest.approx((2 / 3) ** 3 * (1 / 3) ** 14)
    # With QUIC left out, TCP+ is compared only with TCP.
    assert rates.loc["tcp+", "p"] == pytest.approx(1 / 8)


def test_a_site_that_nobody_loads_blames_nobody() -> None:
    """Over QUIC, only the site that never loads was measured. All runs over QUIC were lost, but QUIC is not to
    blame."""
    rows = [
        attempt(site=site, protocol=name, run=run, block=run, reason="load_failed: no" if site == "dead" else "")
        for site, names in (("dead", ("tcp", "quic")), ("alive", ("tcp",)))
        for name in names
        for run in range(1, 21)
    ]
    assert guilty(table_of(pd.DataFrame(rows), 20)) == []


def test_the_guilty_one_only_is_named() -> None:
    assert guilty(campaign_with({"tcp": 3, "tcp+": 6, "quic": 50}, 372)) == ["quic"]
    # QUIC, which lost the most, does not hide that TCP+ lost too many as well.
    assert guilty(campaign_with({"tcp": 0, "tcp+": 40, "quic": 200}, 372)) == ["tcp+", "quic"]
    assert guilty(campaign_with({"tcp": 50, "tcp+": 50, "quic": 50}, 372)) == []
    assert guilty(campaign_with({"tcp": 0, "tcp+": 0, "quic": 0}, 3)) == []
    assert guilty(campaign_with({"tcp": 0, "tcp+": 0, "quic": 1}, 3)) == []


@pytest.mark.slow
@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.permutations(range(3)))
@settings(max_examples=10)
def test_names_do_not_matter(lost: list[int], order: list[int]) -> None:
    names = ["tcp", "tcp+", "quic"]
    shuffled = {names[place]: number for place, number in zip(order, lost, strict=True)}
    one = losses.success_rates(campaign_with(dict(zip(names, lost, strict=True)), 30)).set_index("protocol")
    other = losses.success_rates(campaign_with(shuffled, 30)).set_index("protocol")
    for name, place in zip(names, order, strict=True):
        columns = ["lost", "p_corrected", "warning"]
        # If two protocols lost equally many runs, the first one is left out first. So their p values depend on their
        # order.
        if len(set(lost)) == 3:
            assert one.loc[name, columns].tolist() == pytest.approx(other.loc[names[place], columns].tolist())
    assert ((one["p_corrected"] >= one["p"] - 1e-12) | one["p"].isna()).all()


@pytest.mark.slow
def test_without_a_difference_nobody_is_named() -> None:
    world = World(sites=6, runs=10, lost={"tcp": 0.05, "tcp+": 0.05, "quic": 0.05}, retried=True)
    named = sum(bool(guilty(campaign(world, seed))) for seed in range(30))
    assert consistent(named, 30, 0.005, slack=0.005)


def test_a_setting_without_a_valid_run_is_told_wherever_it_is() -> None:
    table = campaign(World(sites=3, runs=3), 1)
    is_lost = (table.runs["site"] == "s01") & (table.runs["protocol"] == "quic") & (table.runs["network"] == "dsl")
    runs = table.runs.assign(valid=~is_lost, reason=np.where(is_lost, "over_time: not loaded within 60 s", ""))
    # On LTE, another site was never tried over TCP, so this setting has no rows at all.
    runs = runs[~((runs["site"] == "s02") & (runs["network"] == "lte") & (runs["protocol"] == "tcp"))]
    table = CampaignTable(runs, table.document)
    empty = losses.empty_settings(table)
    assert empty.to_numpy().tolist() == [["dsl", "s01", "quic", 3, "over_time"], ["lte", "s02", "tcp", 0, ""]]
    texts = of_losses(losses.success_rates(table), empty, bounds_of(table, declared(table)))
    assert "Behind DSL 1 setting has no valid run: s01 over QUIC." in texts
    assert "Behind LTE 1 setting has not been tried: s02 over TCP." in texts


def test_reasons_are_counted_by_attempts_and_by_runs() -> None:
    lost = {"reason": "load_failed: no"}
    rows = [attempt(**lost), attempt(attempt=2, **lost), attempt(run=2, reason="film_unclean"), attempt(run=3)]
    table = losses.reasons(table_of(pd.DataFrame(rows), 3))
    columns = ["network", "protocol", "kind", "gate", "attempts", "runs"]
    assert table[columns].to_numpy().tolist() == [
        ["dsl", "tcp", "load", "load_failed", 2, 1],
        ["dsl", "tcp", "film", "film_unclean", 1, 1],
    ]
    none = losses.reasons(table_of(pd.DataFrame([attempt()]), 1))
    assert none.columns.tolist() == columns
    assert none.empty


def test_bounds_hold_the_lost_at_the_limit_and_at_the_best() -> None:
    rows = [attempt(protocol=name, run=run, block=run, si=si, plt=si) for name, run, si in [
        ("tcp+", 1, 1000.0), ("tcp+", 2, 1000.0), ("tcp+", 3, 1000.0), ("quic", 1, 500.0), ("quic", 2, 800.0),
    ]]  # fmt: skip
    rows.append(attempt(protocol="quic", run=3, block=3, reason="over_time: not loaded within 8 s"))
    table = table_of(pd.DataFrame(rows), 3, limit_s=8)
    row = bounds_of(table, declared(table)).set_index("metric").loc["si"]
    assert row[["reference", "compared", "sites", "blocks", "lost_reference", "lost_compared"]].tolist() == [
        "tcp+", "quic", 1, 3, 0, 1,
    ]  # fmt: skip
    assert row["mean_gain"] == pytest.approx(-0.35)
    assert row["mean_gain_low"] == pytest.approx((500 + 800 + 500) / 3000 - 1)
    assert row["mean_gain_high"] == pytest.approx((500 + 800 + 8000) / 3000 - 1)
    assert row["gain"] == pytest.approx(np.sqrt(0.5 * 0.8) - 1)
    assert row["gain_high"] == pytest.approx((0.5 * 0.8 * 8) ** (1 / 3) - 1)
    assert row["slower_share"] == pytest.approx(1 / 3)


def test_a_limit_that_nobody_names_is_as_long_as_the_longest_evidence() -> None:
    rows = [attempt(seconds=9.0), attempt(run=2, reason="load_unfinished", seconds=130.0)]
    table = table_of(pd.DataFrame(rows), 2)
    assert losses.load_limits_ms(table, tried_runs(table.runs)).tolist() == [130_000]
    rows = [attempt(seconds=9.0), attempt(run=2, reason="film_unclean", seconds=130.0)]
    table = table_of(pd.DataFrame(rows), 2)
    assert losses.load_limits_ms(table, tried_runs(table.runs)).tolist() == [60_000]


def test_without_losses_bounds_are_the_gain_itself() -> None:
    table = campaign(World(sites=3, runs=6, unfit=0.1), 2)
    bounds = bounds_of(table, declared(table))
    for kind in ("gain", "mean_gain"):
        assert bounds[f"{kind}_low"].to_numpy() == pytest.approx(bounds[kind].to_numpy())
        assert bounds[f"{kind}_high"].to_numpy() == pytest.approx(bounds[kind].to_numpy())


@pytest.mark.slow
@given(st.integers(0, 1000), st.sampled_from([0.05, 0.2, 0.5]))
@settings(max_examples=8)
def test_the_gain_lies_within_its_bounds(seed: int, lost: float) -> None:
    table = campaign(World(sites=3, runs=6, lost={"quic": lost, "tcp+": lost / 2}), seed)
    bounds = bounds_of(table, declared(table)).dropna(subset=["gain"])
    assert (bounds["mean_gain_low"] <= bounds["mean_gain"] + 1e-9).all()
    assert (bounds["gain_low"] <= bounds["gain_high"] + 1e-9).all()


def test_a_gain_that_rests_on_the_losses_is_told() -> None:
    fast_when_it_loads = World(sites=6, runs=10, effects={"quic": -0.03}, lost={"quic": 0.5}, scatter=0.01, blocks=0.01)
    table = campaign(fast_when_it_loads, 1)
    bounds = bounds_of(table, declared(table))
    assert bounds["warning"].str.contains("rests on which runs were lost").sum() >= 3
    assert (bounds["gain"] < 0).all() and (bounds["gain_high"] > 0).all()
    assert (bounds["slower_share"] > 0.4).all()


def narrow(table: CampaignTable) -> Hypotheses:
    """Hypotheses whose equivalence margin is -2.4 % to +2.5 %."""
    return replace(declared(table), equivalence_margin=0.025)


def test_that_protocols_are_equivalent_may_rest_on_the_losses() -> None:
    table = campaign(World(runs=31, lost={"tcp+ lte": 1 / 8, "quic lte": 1 / 8}), 1)
    verdicts = confirmatory(samples_of(table), narrow(table), table.rtt_ms, networks=table.networks)
    assert verdicts["verdict"].eq(EQUIVALENT).all()
    bounds = losses.bounds(table, narrow(table), verdicts).set_index(["network", "metric"])
    assert bounds.loc["dsl", "warning"].eq("").all()
    row = bounds.loc[("lte", "si")]
    assert row["gain_low"] < 1 / 1.025 - 1 < row["gain_high"]
    assert row["warning"].startswith(
        "QUIC against TCP+ behind LTE: that they are equivalent in SI (a change within -2.4 % to +2.5 %) rests on"
    )


@pytest.mark.parametrize(
    ("gain_low", "gain_high", "is_shaken"),
    [(-0.02, 0.02, False), (-0.0243, 0.02, False), (-0.0245, 0.0, True), (0.0, 0.0251, True)],
)
def test_the_range_of_equivalence_is_symmetric_in_logarithms(
    gain_low: float, gain_high: float, is_shaken: bool
) -> None:
    row = {"verdict": EQUIVALENT, "margin": 0.025, "gain": 0.0, "gain_low": gain_low, "gain_high": gain_high}
    assert losses._is_shaken(row | {"lost_reference": 1, "lost_compared": 0}) is is_shaken
    # Losses cannot affect contrasts without losses.
    assert not losses._is_shaken(row | {"lost_reference": 0, "lost_compared": 0})


def answer_with(lost: Mapping[str, float], seed: int = 1) -> str:
    """The answer on a campaign in which QUIC takes 10 % less time, and the protocols lose these shares of loads."""
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), seed)
    (text,) = answer(findings_of(table, hypotheses.load()))
    assert "faster in all 4" in text
    return text


def test_the_answer_tells_what_each_protocol_lost_behind_each_network() -> None:
    text = answer_with({"quic dsl": 1 / 8, "tcp+ lte": 1 / 8})
    assert "if the runs that QUIC lost behind DSL had taken as long as a load may" in text
    assert "; if those that TCP+ lost behind LTE had, down to -" in text
    assert "the difference of the means would be up to +" in text


def test_the_answer_is_no_quieter_when_both_protocols_lose_runs() -> None:
    one, both = answer_with({"quic": 1 / 4}), answer_with({"tcp+": 1 / 12, "quic": 1 / 4})
    assert "that QUIC lost behind DSL and LTE had" in one and "TCP+ lost" not in one
    assert "that QUIC lost behind DSL and LTE had" in both and "that TCP+ lost behind DSL and LTE had" in both


def test_the_answer_names_the_ends_of_the_pair_and_network_that_they_are_of() -> None:
    table = campaign(World(effects={"quic": -0.1}, lost={"quic dsl": 1 / 8, "tcp+ lte": 1 / 8}, runs=31), 1)
    findings = findings_of(table, hypotheses.load())
    bounds = findings["loss_bounds"].set_index("network")
    (text,) = answer(findings)
    assert f"up to {percent(bounds.loc['dsl', 'mean_gain_high'].max())}; " in text
    assert f"down to {percent(bounds.loc['lte', 'mean_gain_low'].min())}." in text


def test_the_answer_tells_of_losses_that_no_protocol_has_more_of() -> None:
    lost = {"tcp+ lte": 1 / 8, "quic lte": 1 / 8, "tcp lte": 1 / 8}
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), 1)
    assert guilty(table) == []
    text = answer_with(lost)
    assert "that QUIC lost behind LTE had" in text and "that TCP+ lost behind LTE had" in text
    assert "DSL" not in text


def test_the_answer_tells_of_few_losses_only_if_the_verdict_rests_on_them() -> None:
    lost = dict.fromkeys(("tcp", "tcp+", "quic"), 1 / 60)
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), 1)
    findings = findings_of(table, hypotheses.load())
    bounds = findings["loss_bounds"]
    assert bounds["lost_compared"].min() > 0 and bounds["warning"].eq("").all() and guilty(table) == []
    (text,) = answer(findings)
    assert "lost" not in text
    findings.store["loss_bounds"] = bounds.assign(warning=np.where(bounds["network"] == "lte", "rests on", ""))
    (text,) = answer(findings)
    assert "the runs that QUIC lost behind LTE had" in text and "that TCP+ lost behind LTE had" in text


def test_networks_and_protocols_without_any_run_are_told_and_break_nothing() -> None:
    table = campaign(World(sites=3, runs=3), 1)
    runs = table.runs[(table.runs["network"] == "dsl") & (table.runs["protocol"] != "quic")].drop(columns="plt")
    table = CampaignTable(runs, table.document)
    bounds = bounds_of(table, declared(campaign(World(sites=3, runs=3), 1)))
    assert bounds["metric"].unique().tolist() == ["si"]
    assert bounds["blocks"].eq(0).all() and bounds["gain"].isna().all() and bounds["rank_p_corrected"].eq(1).all()
    rates = losses.success_rates(table).set_index(["network", "protocol"])
    assert rates.loc[("lte", "tcp"), ["planned", "tried"]].tolist() == [9, 0]
    texts = of_losses(losses.success_rates(table), losses.empty_settings(table), bounds)
    assert [text.split(":")[0] for text in texts] == [
        "Behind DSL 3 settings have not been tried",
        "Behind LTE 9 settings have not been tried",
    ]
