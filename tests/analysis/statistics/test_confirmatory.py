"""The declared family's verdicts: small cases computed by hand, and properties that must always hold."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis import hypotheses
from analysis.statistics.confirmatory import COLUMNS, confirmatory, first_blocks, without_selection
from analysis.statistics.contrast_table import verdicts
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.statistics.ratios import ROBUST_BLOCKS, margins
from analysis.statistics.samples import Array, Samples
from analysis.statistics.spending import Looks, levels, looks_of_plan

PAIR = Pair("tcp+", "quic")
DECLARED = replace(hypotheses.load(), comparisons=(PAIR,), family=(PAIR,), family_metrics=("si",))
RTT_MS = {"dsl": 24.0}
# The looks of a campaign that may end early.
AUTO = looks_of_plan([31], 3, may_end=True)


def declared(*pairs: Pair, metrics: tuple[str, ...] = ("si",)) -> Hypotheses:
    return replace(DECLARED, comparisons=pairs, family=pairs, family_metrics=metrics)


def samples(
    values: Array, protocols: tuple[str, ...] = ("tcp+", "quic"), metrics: tuple[str, ...] = ("si",)
) -> Samples:
    """Samples with these `values` (networks x sites x protocols x metrics x blocks)."""
    networks = ("dsl", "lte", "da2gc", "mss")[: len(values)]
    return Samples(values, networks, tuple(f"s{site}" for site in range(values.shape[1])), protocols, metrics)


def drawn(
    gain: float, *, networks: int = 1, sites: int = 3, blocks: int = 10, scatter: float = 0.05, seed: int = 1
) -> Array:
    """Times of two protocols; those of the second are larger by `gain`."""
    draw = np.random.default_rng(seed)
    times = 1000 * np.exp(draw.normal(0, scatter, (networks, sites, 2, 1, blocks)))
    times[:, :, 1] *= 1 + gain
    return times


def only(table: pd.DataFrame) -> pd.Series:
    assert len(table) == 1
    return table.iloc[0]


def test_a_contrast_of_one_site_is_students_test_of_its_log_ratios() -> None:
    tcp, quic = np.array([[1000.0, 1100, 900, 1000], [980.0, 1000, 850, 900]])
    row = only(confirmatory(samples(np.stack([tcp, quic])[None, None, :, None]), DECLARED, RTT_MS))
    ratios = np.log(quic / tcp)
    expected = stats.ttest_1samp(ratios, 0)
    low, high = expected.confidence_interval(0.95)
    assert list(row[["reference", "compared", "network", "metric", "sites", "blocks"]]) == [*PAIR, "dsl", "si", 1, 4]
    numbers = [np.expm1(ratios.mean()), np.expm1(low), np.expm1(high), expected.pvalue, expected.pvalue]
    assert list(row[["gain", "gain_low", "gain_high", "p", "p_corrected"]]) == pytest.approx(numbers)
    margin = np.log1p(12 / stats.gmean(tcp))
    assert row["margin"] == pytest.approx(np.expm1(margin))
    equivalent = stats.ttest_1samp(ratios, -margin, alternative="greater").pvalue
    assert row["equivalence_p"] == pytest.approx(equivalent)
    assert row["verdict"] == NOT_DECIDED


def test_the_columns_begin_with_those_of_the_published_table() -> None:
    names = "reference, compared, network, metric, sites, blocks, gain, gain_low, gain_high, p, p_corrected, verdict"
    assert COLUMNS[:12] == names.split(", ")
    assert list(confirmatory(samples(drawn(0)), DECLARED, RTT_MS).columns) == COLUMNS


@pytest.mark.parametrize(("gain", "word"), [(-0.1, FASTER), (0.1, SLOWER), (0.0, EQUIVALENT)])
def test_what_is_clear_gets_its_word(gain: float, word: str) -> None:
    times = drawn(gain, sites=12, blocks=31, scatter=0.01)
    row = only(confirmatory(samples(times), DECLARED, RTT_MS))
    assert row["verdict"] == word
    assert row["gain_low"] < gain < row["gain_high"]


def test_a_difference_that_is_shown_not_to_matter_is_no_win() -> None:
    table = pd.DataFrame(
        {"gain": [-0.1, 0.1, 0.1, np.nan], "p_corrected": [0.009, 0.009, 0.01, 1], "equivalence_p_corrected": 0.001}
    )
    assert list(verdicts(table["gain"], table, 0.01)) == [EQUIVALENT] * 4
    assert list(verdicts(table["gain"], table.assign(equivalence_p_corrected=0.01), 0.01)) == [
        FASTER,
        SLOWER,
        NOT_DECIDED,
        NOT_DECIDED,
    ]


def test_the_correction_counts_what_was_declared_and_not_measured() -> None:
    """A declared protocol is absent, and one network has no runs: the table has their contrasts, as not decided."""
    absent = Pair("tcp+bbr", "quic+bbr")
    table = confirmatory(samples(drawn(-0.1)), declared(PAIR, absent), RTT_MS, networks=("mss", "dsl"))
    assert list(zip(table["compared"], table["network"], strict=True)) == [
        ("quic", "mss"),
        ("quic", "dsl"),
        ("quic+bbr", "mss"),
        ("quic+bbr", "dsl"),
    ]
    measured, others = table.loc[1], table.drop(1)
    assert measured["p_corrected"] == pytest.approx(4 * measured["p"])
    assert (others["p_corrected"] == 1).all()
    assert set(others["verdict"]) == {NOT_DECIDED}
    assert (others[["sites", "blocks"]] == 0).all(axis=None)
    assert others[["gain", "gain_low", "gain_high", "p"]].isna().all(axis=None)


def test_what_was_added_has_a_correction_of_its_own() -> None:
    """A network that was added later is corrected separately: the correction of earlier declarations does not count it,
    and its own correction does not count them."""
    times = drawn(-0.02, networks=3, sites=4)
    together = confirmatory(samples(times), DECLARED, RTT_MS).set_index("network")
    late = replace(DECLARED, added_networks={"da2gc": "later"})
    table = confirmatory(samples(times), late, RTT_MS).set_index("network")
    assert list(table["p"]) == list(together["p"])
    first = confirmatory(samples(times[:2]), DECLARED, RTT_MS).set_index("network")
    assert list(table["p_corrected"][["dsl", "lte"]]) == list(first["p_corrected"])
    assert table.loc["da2gc", "p_corrected"] == table.loc["da2gc", "p"]
    assert together.loc["da2gc", "p_corrected"] > together.loc["da2gc", "p"]


def test_a_campaign_without_runs_has_the_declared_contrasts_and_no_verdict() -> None:
    empty = Samples(np.empty((0, 0, 0, 1, 0)), (), (), (), ("si",))
    assert set(confirmatory(empty, DECLARED, RTT_MS, networks=("dsl", "lte"))["verdict"]) == {NOT_DECIDED}
    assert confirmatory(empty, DECLARED, RTT_MS, AUTO).empty
    assert confirmatory(samples(drawn(0)), declared(), RTT_MS).empty


def test_one_block_is_no_evidence() -> None:
    row = only(confirmatory(samples(drawn(-0.5, sites=1, blocks=1)), DECLARED, RTT_MS))
    assert (row["blocks"], row["verdict"]) == (1, NOT_DECIDED)
    assert np.isfinite(row["gain"])
    assert np.isnan([row["gain_low"], row["p"]]).all()


def test_a_site_without_a_run_of_one_protocol_is_not_among_the_sites() -> None:
    times = drawn(-0.1)
    times[0, 1, 1] = np.nan
    row = only(confirmatory(samples(times), DECLARED, RTT_MS))
    assert (row["sites"], row["blocks"]) == (2, 20)


def test_runs_that_were_not_measured_together_are_not_compared() -> None:
    times = drawn(-0.1)
    times[:, :, 0, :, :5] = np.nan
    times[:, :, 1, :, 5:] = np.nan
    row = only(confirmatory(samples(times), DECLARED, RTT_MS))
    assert (row["blocks"], row["verdict"]) == (0, NOT_DECIDED)


def test_the_margin_is_half_a_round_trip_of_the_references_time_over_sites() -> None:
    times = np.full((2, 3, 2, 1, 4), np.nan)
    times[:, 0, 0] = 1000
    times[:, 1, 0] = 500
    margin = margins(samples(times), PAIR, DECLARED, {"dsl": 40})
    assert margin[0, 0] == pytest.approx((np.log(1.02) + np.log(1.04)) / 2)
    # LTE has no RTT here.
    assert margin[1, 0] == pytest.approx(np.log1p(DECLARED.equivalence_margin))
    assert np.isnan(margins(samples(times), Pair("quic", "tcp+"), DECLARED, {"dsl": 40})[0, 0])


def test_at_a_look_there_are_the_blocks_so_far_and_nothing_at_one_that_is_not_reached() -> None:
    ratios = np.arange(2 * 1 * 1 * 7, dtype=float).reshape(2, 1, 1, 7)
    first, second = first_blocks(ratios, (7, 4), (3, 6))
    assert np.array_equal(first, ratios[..., :3])
    assert np.array_equal(second[0], ratios[0, ..., :6])
    assert np.isnan(second[1]).all()


def test_what_a_look_has_decided_stands_whatever_comes_after_it() -> None:
    times = drawn(-0.1, blocks=12, scatter=0.02)
    at_look = only(confirmatory(samples(times[..., :5]), DECLARED, RTT_MS, AUTO))
    assert at_look["verdict"] == FASTER
    assert at_look["p"] > 10 * only(confirmatory(samples(times[..., :5]), DECLARED, RTT_MS))["p"]
    times[..., 5:] = drawn(0, blocks=7, scatter=0.2, seed=2)
    later = only(confirmatory(samples(times), DECLARED, RTT_MS, AUTO))
    assert later["p"] <= at_look["p"]
    assert later["verdict"] == FASTER


def test_the_intervals_of_a_campaign_that_may_end_hold_at_all_looks_at_once() -> None:
    times = drawn(-0.1, blocks=5)
    wide, narrow = (only(confirmatory(samples(times), DECLARED, RTT_MS, looks)) for looks in (AUTO, None))
    one_sided = levels(AUTO.blocks, 31, (1 - DECLARED.confidence) / 2)[0]
    one = only(confirmatory(samples(times), replace(DECLARED, confidence=1 - 2 * one_sided), RTT_MS))
    assert list(wide[["gain_low", "gain_high"]]) == pytest.approx(list(one[["gain_low", "gain_high"]]), rel=0.02)
    assert wide["gain_low"] < narrow["gain_low"] < narrow["gain_high"] < wide["gain_high"]


@pytest.mark.parametrize(("blocks", "is_wide"), [(9, True), (10, False)])
def test_a_fixed_plan_has_plain_intervals_once_it_has_ended(blocks: int, is_wide: bool) -> None:
    times = samples(drawn(-0.1, blocks=blocks))
    planned, plain = (only(confirmatory(times, DECLARED, RTT_MS, looks)) for looks in (looks_of_plan([10], 3), None))
    assert (planned["gain_high"] > plain["gain_high"]) == is_wide


def test_a_raised_number_of_runs_is_a_look_and_costs_what_the_plan_did_not_spend() -> None:
    times = samples(drawn(-0.03, blocks=31))
    raised, planned = (only(confirmatory(times, DECLARED, RTT_MS, looks_of_plan(runs, 1))) for runs in ([10, 31], [31]))
    assert raised["p"] > planned["p"]


@pytest.mark.parametrize(
    ("sites", "blocks", "is_exchange"), [(5, 3, True), (4, 3, False), (2, 9, True), (5, 10, False)]
)
def test_a_small_plan_of_several_sites_is_tested_by_exchanges(sites: int, blocks: int, is_exchange: bool) -> None:
    assert looks_of_plan([blocks], sites).exchanges == is_exchange
    looks = looks_of_plan([blocks], sites)
    times = samples(drawn(-0.1, sites=sites, blocks=blocks))
    one, other = (
        only(confirmatory(times, DECLARED, RTT_MS, replace(looks, exchanges=value))) for value in (True, False)
    )
    tested = only(confirmatory(times, DECLARED, RTT_MS, looks))
    assert tested["p"] == (one if is_exchange else other)["p"]
    assert (one["p"] != other["p"]) == (blocks < ROBUST_BLOCKS)


def test_what_ended_early_is_shrunken_and_nothing_else() -> None:
    early = only(confirmatory(samples(drawn(-0.11, blocks=5)), DECLARED, RTT_MS, AUTO))
    assert early["verdict"] == FASTER
    assert early["gain"] < early["gain_shrunken"] < 0
    clear = only(confirmatory(samples(drawn(-0.6, blocks=5)), DECLARED, RTT_MS, AUTO))
    assert clear["gain_shrunken"] == pytest.approx(clear["gain"], rel=0.01)
    for looks, blocks, gain in ((AUTO, 31, -0.11), (None, 5, -0.11), (AUTO, 5, 0), (looks_of_plan([31], 3), 5, -0.11)):
        row = only(confirmatory(samples(drawn(gain, blocks=blocks)), DECLARED, RTT_MS, looks))
        assert np.isnan(row["gain_shrunken"])


@pytest.mark.parametrize("truth", [0.5, 2.0, 3.5, 6.0])
def test_what_was_selected_is_moved_half_way_to_the_truth_behind_its_mean(truth: float) -> None:
    draws = truth + np.random.default_rng(3).standard_normal(2_000_000)
    level = 0.001
    mean = draws[np.abs(draws) > stats.norm.isf(level / 2)].mean()
    p = pd.Series([2 * stats.norm.sf(mean)])
    (estimate,) = without_selection(pd.Series([mean]), p, pd.Series([level]))
    assert estimate == pytest.approx((mean + truth) / 2, abs=0.03)


def test_before_the_first_look_nothing_is_decided() -> None:
    row = only(confirmatory(samples(drawn(-0.5, blocks=4)), DECLARED, RTT_MS, AUTO))
    assert (row["verdict"], row["p_corrected"], row["blocks"]) == (NOT_DECIDED, 1, 12)
    assert row["gain_high"] < 0


TIMES = st.integers(0, 2**20).map(lambda seed: drawn(-0.03, networks=4, sites=3, blocks=7, seed=seed))


@settings(max_examples=8)
@given(TIMES)
def test_swapping_the_protocols_swaps_the_verdict(times: Array) -> None:
    forward = confirmatory(samples(times), DECLARED, {})
    backward = confirmatory(samples(times), declared(Pair("quic", "tcp+")), {})
    assert np.log1p(forward["gain"]).to_numpy() == pytest.approx(-np.log1p(backward["gain"]).to_numpy())
    assert forward["p_corrected"].to_numpy() == pytest.approx(backward["p_corrected"].to_numpy())
    assert list(forward["verdict"].replace({FASTER: SLOWER, SLOWER: FASTER})) == list(backward["verdict"])


@settings(max_examples=8)
@given(TIMES, st.floats(0.01, 100))
def test_scaling_all_times_and_round_trips_changes_nothing(times: Array, factor: float) -> None:
    one = confirmatory(samples(times), DECLARED, RTT_MS)
    other = confirmatory(samples(factor * times), DECLARED, {"dsl": 24 * factor})
    numbers = ["gain", "gain_low", "gain_high", "p", "equivalence_p", "margin"]
    assert other[numbers].to_numpy() == pytest.approx(one[numbers].to_numpy(), rel=1e-6)
    assert list(other["verdict"]) == list(one["verdict"])


@settings(max_examples=8)
@given(TIMES, st.permutations(range(3)), st.permutations(range(7)))
def test_the_order_of_sites_and_blocks_does_not_matter(times: Array, sites: list[int], blocks: list[int]) -> None:
    one = confirmatory(samples(times), DECLARED, RTT_MS)
    other = confirmatory(samples(times[:, sites][..., blocks]), DECLARED, RTT_MS)
    numbers = ["sites", "blocks", "gain", "gain_low", "gain_high", "p", "equivalence_p", "margin"]
    assert other[numbers].to_numpy() == pytest.approx(one[numbers].to_numpy())


@pytest.mark.parametrize(
    "looks", [AUTO, looks_of_plan([31], 2), looks_of_plan([5, 10, 20, 31], 2), looks_of_plan([31, 25], 2)]
)
def test_looking_often_claims_no_more_than_the_level_says(looks: Looks) -> None:
    """Each simulated campaign is one network of a single table. They all form one family, so the p values that are
    counted are those before correction."""
    campaigns = 2000
    draw = np.random.default_rng(5)
    times = np.exp(draw.normal(0, 0.05, (campaigns, 2, 2, 1, 31)))
    networks = tuple(str(number) for number in range(campaigns))
    table = Samples(times, networks, ("one", "other"), ("tcp+", "quic"), ("si",))
    for level in (0.05, 0.01):
        claims = int((confirmatory(table, DECLARED, {}, looks)["p"] < level).sum())
        assert claims <= stats.binom.isf(1e-4, campaigns, level)


def test_differences_and_equivalences_together_err_as_often_as_is_said() -> None:
    """One page on two networks: nothing differs on the first, and on the second the difference is just the margin."""
    campaigns, draw = 2000, np.random.default_rng(11)
    times = np.exp(draw.normal(0, 0.03, (2 * campaigns, 1, 2, 1, 31)))
    times[1::2, :, 1] *= 1 + DECLARED.equivalence_margin
    names = tuple(f"{number // 2:04} {number % 2}" for number in range(2 * campaigns))
    table = confirmatory(Samples(times, names, ("page",), PAIR, ("si",)), DECLARED, {}, looks_of_plan([31], 1))
    p = np.where(table["network"].str.endswith("0"), table["p"], table["equivalence_p"])
    wrong = int((2 * p.reshape(campaigns, 2) < 0.05).any(axis=1).sum())
    assert 0.01 * campaigns < wrong <= stats.binom.isf(1e-4, campaigns, 0.05)
