"""Lost runs are reported and tested, and cannot flatter a protocol."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.first_screens import said
from support.worlds import World, attempt, campaign, table_of

from analysis import hypotheses, losses
from analysis.attempts import exclusions, rejections
from analysis.report.conclusion import LazyFindings, findings_of
from analysis.report.first_screen import success
from analysis.report.sections.declared import confirmatory as table_of_verdicts
from analysis.report.sentences import headlines, warnings
from analysis.report.warnings import of_losses, of_rejections, runs_missing
from analysis.runs import CampaignTable
from analysis.samples import samples_of
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT
from analysis.text import percent
from dataset.table import GivenUp, write_given_up


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
    assert rates[["planned", "tried", "valid", "lost", "attempts"]].tolist() == [4, 3, 2, 2, 4]
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
    named = sum(bool(guilty(campaign(world, seed))) for seed in range(15))
    # At most one campaign in a hundred names somebody; two of fifteen do once in a hundred times.
    assert named <= 1


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
    assert "On DSL, 1 setting has no valid run: s01 over QUIC." in texts
    assert "On LTE, 1 setting has not been tried: s02 over TCP." in texts


def test_reasons_are_counted_by_attempts_and_by_runs() -> None:
    lost = {"reason": "load_failed: no"}
    rows = [attempt(**lost), attempt(attempt=2, **lost), attempt(run=2, reason="film_unclean"), attempt(run=3)]
    table = exclusions(table_of(pd.DataFrame(rows), 3).runs)
    columns = ["network", "protocol", "kind", "gate", "excluded", "runs"]
    assert table[columns].to_numpy().tolist() == [
        ["dsl", "tcp", "load", "load_failed", 2, 1],
        ["dsl", "tcp", "film", "film_unclean", 1, 1],
    ]
    none = exclusions(table_of(pd.DataFrame([attempt()]), 1).runs)
    assert none.columns.tolist() == [*columns, "example"]
    assert none.empty


def test_bounds_hold_the_lost_at_the_slowest_and_the_fastest_load_of_their_page() -> None:
    """Not at the time limit: at 120 s, any lost load gives a bound of some 2000 %, which says nothing."""
    rows = [attempt(protocol=name, run=run, block=run, si=si, plt=si) for name, run, si in [
        ("tcp+", 1, 1000.0), ("tcp+", 2, 1000.0), ("tcp+", 3, 1000.0), ("quic", 1, 500.0), ("quic", 2, 800.0),
        ("tcp", 1, 1200.0),
    ]]  # fmt: skip
    rows.append(attempt(protocol="quic", run=3, block=3, reason="over_time: not loaded within 8 s"))
    table = table_of(pd.DataFrame(rows), 3, limit_s=120)
    row = bounds_of(table, declared(table)).set_index("metric").loc["si"]
    assert row[["reference", "compared", "blocks", "lost_reference", "lost_compared"]].tolist() == [
        "tcp+", "quic", 3, 0, 1,
    ]  # fmt: skip
    assert row["gain"] == pytest.approx(np.sqrt(0.5 * 0.8) - 1)
    assert row["gain_low"] == pytest.approx((0.5 * 0.8 * 0.5) ** (1 / 3) - 1)
    assert row["gain_high"] == pytest.approx((0.5 * 0.8 * 1.2) ** (1 / 3) - 1)
    assert row["lost_p_corrected"] == 1


def test_losses_of_a_pair_are_compared_in_the_blocks_in_which_one_of_both_is_lost() -> None:
    bounds = bounds_of(table := campaign_with({"tcp+": 3, "quic": 15}, 31), declared(table))
    assert bounds["lost_reference"].eq(3).all() and bounds["lost_compared"].eq(15).all()
    # Blocks 1 to 3 lost both runs, blocks 4 to 15 only that over QUIC.
    assert bounds["lost_p_corrected"].tolist() == pytest.approx([2 * 0.5**12] * len(bounds))


def test_without_losses_bounds_are_the_gain_itself() -> None:
    table = campaign(World(sites=3, runs=6, unfit=0.1), 2)
    bounds = bounds_of(table, declared(table))
    for end in ("gain_low", "gain_high"):
        assert bounds[end].to_numpy() == pytest.approx(bounds["gain"].to_numpy())


@pytest.mark.slow
@given(st.integers(0, 1000), st.sampled_from([0.05, 0.2, 0.5]))
@settings(max_examples=8)
def test_the_gain_lies_within_its_bounds(seed: int, lost: float) -> None:
    table = campaign(World(sites=3, runs=6, lost={"quic": lost, "tcp+": lost / 2}), seed)
    bounds = bounds_of(table, declared(table)).dropna(subset=["gain"])
    assert (bounds["gain_low"] <= bounds["gain_high"] + 1e-9).all()


def test_a_gain_that_rests_on_the_losses_is_told() -> None:
    effects, lost = {"quic": -0.055}, {"quic": 0.7}
    fast_when_it_loads = World(sites=6, runs=20, effects=effects, lost=lost, scatter=0.01, blocks=0.01)
    table = campaign(fast_when_it_loads, 1)
    bounds = bounds_of(table, declared(table))
    assert bounds["warning"].str.contains("rests on which runs were lost").sum() >= 3
    assert (bounds["gain"] < 0).all() and (bounds["gain_high"] > 0).all()


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
        "QUIC against TCP+ on LTE: that they are equivalent in SI (a change within -2.4 % to +2.5 %) rests on"
    )


@pytest.mark.parametrize(
    ("gain_low", "gain_high", "is_shaken"),
    [(-0.02, 0.02, False), (-0.0243, 0.02, False), (-0.0245, 0.0, True), (0.0, 0.0251, True)],
)
def test_the_range_of_equivalence_is_symmetric_in_logarithms(
    gain_low: float, gain_high: float, is_shaken: bool
) -> None:
    row: dict[str, Any] = dict.fromkeys(("reference", "compared", "network", "metric"), "x")
    row |= {"verdict": EQUIVALENT, "margin": 0.025, "gain": 0.0, "gain_low": gain_low, "gain_high": gain_high}
    assert bool(losses._bounds_warning(row | {"lost_reference": 1, "lost_compared": 0})) is is_shaken
    # Losses cannot affect contrasts without losses.
    assert not losses._bounds_warning(row | {"lost_reference": 0, "lost_compared": 0})


def answer_with(lost: Mapping[str, float], seed: int = 1) -> str:
    """The answer on a campaign in which QUIC takes 10 % less time, and the protocols lose these shares of loads."""
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), seed)
    text = said(findings_of(table, hypotheses.load()))
    assert "faster" in text and "not decided" not in text
    return text


def test_the_answer_tells_the_shares_lost_and_whether_they_differ() -> None:
    text = answer_with({"quic dsl": 1 / 8, "tcp+ lte": 1 / 8})
    shares = r"On DSL QUIC 1\d\.\d % and TCP\+ 0\.0 % \(shown to differ\); on LTE QUIC 0\.0 % "
    assert re.search(rf"Loads were lost, and the answer is about the others\. {shares}", text)
    assert "as long as the slowest load of its page" in text
    alike = answer_with(dict.fromkeys(("tcp", "tcp+", "quic"), 1 / 8))
    assert alike.count("(no difference shown)") == 2 and "among loads that succeeded" not in alike


@cache
def with_losses_on_dsl() -> LazyFindings:
    """Findings that tests must not change."""
    return findings_of(campaign(World(effects={"quic": -0.1}, lost={"quic dsl": 1 / 8}, runs=31), 1), hypotheses.load())


def test_a_verdict_on_protocols_that_lose_loads_unequally_is_one_among_loads_that_succeeded() -> None:
    """One in eight of QUIC's loads on DSL never ends; those that end take 10 % less."""
    findings = with_losses_on_dsl()
    text = said(findings)
    beginning = "On average, QUIC shows these 12 pages sooner than TCP+ on LTE and among loads that succeeded on DSL."
    assert text.startswith(beginning)
    assert text.count(": faster, -") == 2 and text.count(": faster among loads that succeeded, -") == 2
    dsl, lte = headlines(findings)
    assert ": faster among loads that succeeded." in dsl and ": faster." in lte
    words = table_of_verdicts(findings).texts.set_index("network")["verdict"]
    assert set(words["DSL"]) == {"faster among loads that succeeded"} and set(words["LTE"]) == {"faster"}


def test_the_answer_names_the_ends_of_the_pair_and_networks_that_they_are_of() -> None:
    findings = with_losses_on_dsl()
    bounds = findings["loss_bounds"].set_index("network").loc["dsl"]
    text = said(findings)
    assert f"between {percent(bounds['gain_low'].min())} and {percent(bounds['gain_high'].max())}." in text


def test_the_answer_tells_of_losses_that_no_protocol_has_more_of() -> None:
    lost = {"tcp+ lte": 1 / 8, "quic lte": 1 / 8, "tcp lte": 1 / 8}
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), 1)
    assert guilty(table) == []
    _, title, details = answer_with(lost).partition("Loads were lost")
    assert title and ". On LTE QUIC 1" in details and "DSL" not in details


def test_the_answer_tells_of_few_losses_only_if_the_verdict_rests_on_them() -> None:
    lost = dict.fromkeys(("tcp", "tcp+", "quic"), 1 / 60)
    table = campaign(World(effects={"quic": -0.1}, lost=lost, runs=31), 1)
    findings = findings_of(table, hypotheses.load())
    bounds = findings["loss_bounds"]
    assert bounds["lost_compared"].min() > 0 and bounds["warning"].eq("").all() and guilty(table) == []
    text = said(findings)
    assert "were lost" not in text
    findings.store["loss_bounds"] = bounds.assign(warning=np.where(bounds["network"] == "lte", "rests on", ""))
    text = said(findings)
    assert "Loads were lost, and the answer is about the others. On LTE QUIC 2" in text


# Noise of 25 %, eight pages and 31 runs, as in the review's campaign of slow loads that the machine rejects.
NOISY = World(sites=8, runs=31, scatter=0.25)


def test_slow_loads_that_the_machine_rejects_are_warned_of_and_named_in_the_verdict() -> None:
    """No protocol differs. Those of QUIC's loads that take more than 1.1 times as long as usual are rejected and made
    again, so QUIC looks faster."""
    findings = findings_of(campaign(replace(NOISY, busy={"quic": 1.1}), 1), hypotheses.load())
    texts = " ".join(warnings(findings))
    assert "More runs over QUIC than over the others had a load that was rejected for the machine. " in texts
    assert "On DSL and LTE, loads that were rejected for the machine took longer than those of their setting" in texts
    text = said(findings)
    assert ": faster, -" in text
    end = "Verdicts rest on which loads were rejected for the machine. The networks are DSL and LTE."
    assert text.endswith(end)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_slow_loads_that_the_machine_rejects_are_warned_of_in_every_campaign(seed: int) -> None:
    table = campaign(replace(NOISY, busy={"quic": 1.35}), seed)
    tests = losses.rejection_tests(table)
    assert len(of_rejections(tests, losses.success_rates(table))) == 2
    assert (tests[["kind", "protocols"]] == ["machine", "quic"]).all(axis=None)
    assert tests["warning"].eq(f"{losses.MORE}; {losses.LONGER}").all()
    at_random = losses.rejection_tests(campaign(replace(NOISY, busy=0.08), seed))
    assert at_random["runs"].min() > 20 and at_random["warning"].eq("").all()


def test_slow_loads_that_are_rejected_over_all_protocols_alike_are_warned_of() -> None:
    tests = losses.rejection_tests(campaign(replace(NOISY, busy=dict.fromkeys(("tcp", "tcp+", "quic"), 1.35)), 1))
    assert tests["warning"].eq(losses.LONGER).all() and tests["protocols"].eq("").all()


def test_a_campaign_without_rejections_has_nothing_to_test() -> None:
    assert losses.rejection_tests(campaign(replace(NOISY, busy=0), 1)).empty


def test_rejections_at_random_are_harmless() -> None:
    findings = findings_of(campaign(replace(NOISY, busy=0.08), 1), hypotheses.load())
    assert findings["rejections"]["runs"].min() > 20
    assert "rejected" not in " ".join([*warnings(findings), said(findings)])


def test_a_load_without_a_load_time_is_compared_by_the_duration_of_its_attempt() -> None:
    rows = [attempt(run=run, block=run, seconds=10.0 + run / 100, plt=100.0 * run) for run in range(1, 32)]
    rows += [
        attempt(run=run, attempt=0, block=run, seconds=99.0, plt=np.nan, reason="replay: ?") for run in range(1, 9)
    ]
    row = losses.rejection_tests(table_of(pd.DataFrame(rows), 31)).iloc[0]
    assert (row["kind"], row["runs"], row["longer_share"], row["warning"]) == ("machine", 8, 1.0, losses.LONGER)
    # Only their place in the setting counts, as in the exact test of ranks.
    shuffled = pd.DataFrame(rows).assign(seconds=np.random.default_rng(1).permutation(np.arange(39.0)))
    p = losses._longer(rejections(table_of(shuffled, 31).runs))[1]
    exact = stats.mannwhitneyu(shuffled["seconds"][31:], shuffled["seconds"][:31], alternative="greater")
    assert p == pytest.approx(exact.pvalue, abs=0.02)


def test_attempts_that_were_withdrawn_or_rejected_by_a_gate_that_was_given_up_are_no_losses(tmp_path: Path) -> None:
    """`request_missed` once rejected loads over QUIC for making the requests that they make over QUIC."""
    rows = [attempt(protocol=name, run=run, block=run) for name in ("tcp+", "quic") for run in range(1, 6)]
    rows[5]["attempt"] = 2
    rows.append(attempt(protocol="quic", block=1, reason="request_missed: 9 requests had no recorded answer"))
    rows.append(
        attempt(site="w", network="lte", protocol="quic", block=9, reason="last_frame_unlike: its picture turns")
    )
    rows.append(attempt(site="w", network="lte", protocol="tcp+", block=9, reason="withdrawn: its picture turns"))
    table = replace(table_of(pd.DataFrame(rows), 5), folder=tmp_path)
    write_given_up(tmp_path, [GivenUp("w", "lte", "withdrawn: its picture turns", 13, "then")])
    rates = losses.success_rates(table).set_index(["network", "protocol"])
    assert rates["lost"].eq(0).all()
    assert rates.loc[("dsl", "quic"), ["tried", "valid", "planned"]].tolist() == [5, 5, 10]
    assert rates.loc[("lte", "quic"), ["tried", "planned"]].tolist() == [0, 5]
    assert runs_missing(table, losses.success_rates(table)) == 3 * 10 - 10 + 3 * 5
    assert losses.rejection_tests(table)["kind"].tolist() == ["withdrawn"]
    assert "no valid run" not in " ".join(warnings(findings_of(table, hypotheses.load())))


def test_success_names_the_protocols_that_lost_many_loads_and_the_pairs_that_differ() -> None:
    table = campaign(World(sites=6, runs=31, lost={"quic dsl": 1 / 8, "tcp lte": 0.02}), 1)
    findings = findings_of(table, hypotheses.load())
    text = success(findings["success_rates"], findings["loss_bounds"])
    # TCP+ lost none, but less than QUIC.
    assert re.fullmatch(r"on DSL TCP\+ 100\.0 % and QUIC 8\d\.\d %; at least 9\d\.\d % elsewhere\.", text)
    nothing_lost = findings_of(campaign(World(sites=2, runs=3), 1), hypotheses.load())
    text = success(nothing_lost["success_rates"], nothing_lost["loss_bounds"])
    assert text == "100.0 % over all protocols on all networks."


def test_networks_and_protocols_without_any_run_are_told_and_break_nothing() -> None:
    table = campaign(World(sites=3, runs=3), 1)
    runs = table.runs[(table.runs["network"] == "dsl") & (table.runs["protocol"] != "quic")].drop(columns="plt")
    table = CampaignTable(runs, table.document)
    bounds = bounds_of(table, declared(campaign(World(sites=3, runs=3), 1)))
    assert bounds["metric"].unique().tolist() == ["si"]
    assert bounds["blocks"].eq(0).all() and bounds["gain"].isna().all() and bounds["warning"].eq("").all()
    rates = losses.success_rates(table).set_index(["network", "protocol"])
    assert rates.loc[("lte", "tcp"), ["planned", "tried"]].tolist() == [9, 0]
    texts = of_losses(losses.success_rates(table), losses.empty_settings(table), bounds)
    assert [text.split(":")[0] for text in texts] == [
        "On DSL, 3 settings have not been tried",
        "On LTE, 9 settings have not been tried",
    ]
