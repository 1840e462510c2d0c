"""The paper's sentences on simulated campaigns in which they are true or false, and on incomplete ones."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.samples_truth import samples

from analysis import hypotheses
from analysis.paper.claim_correlations import metric_agreement, metric_agreements, reliability
from analysis.paper.claim_tests import ClaimInputs, Condition, beyond_p
from analysis.paper.claims import (
    CLAIMS,
    DOES_NOT_HOLD,
    FIGURE_METRICS,
    HOLDS,
    TESTABLE,
    TESTS,
    balance_of,
    claims,
    judge,
)
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Origin, Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.ratios import margins, of_numbers
from analysis.statistics.samples import Array, Samples

# The simulated campaigns have these metrics of the family.
FAMILY = replace(hypotheses.load(), family_metrics=("si", "plt"))
RTT_MS = {"dsl": 24.0, "lte": 74.0, "da2gc": 262.0, "mss": 760.0}
SCALE_MS = np.array([900.0, 1500.0, 16000.0, 14000.0])
NETWORKS, PROTOCOLS = tuple(RTT_MS), ("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr")
# An effect on a protocol's times: a factor, and by how many round trips they are shorter. Each is one number, or one
# for each network.
Effect = tuple[float | list[float], float | list[float]]


def campaign(
    effects: Mapping[str, Effect], sites: int = 14, blocks: int = 8, seed: int = 1, noise: float = 0.01
) -> Samples:
    """A campaign with every network, protocol and metric of the paper.

    Pages differ in length. All times of a block share a random factor.
    """
    draw = np.random.default_rng(seed)
    shape = (len(NETWORKS), sites, len(FIGURE_METRICS), blocks)
    page = SCALE_MS[:, None, None, None] * np.exp(draw.normal(0, 0.6, (1, sites, 1, 1)))
    common = page * np.exp(draw.normal(0, 0.05, (len(NETWORKS), sites, 1, blocks)))
    rtts = np.array(list(RTT_MS.values()))[:, None, None, None]
    times = {}
    for protocol in PROTOCOLS:
        factor, round_trips = (
            np.broadcast_to(value, 4)[:, None, None, None] for value in effects.get(protocol, (1, 0))
        )
        times[protocol] = (common * factor - round_trips * rtts) * np.exp(draw.normal(0, noise, shape))
    return samples(times, NETWORKS, FIGURE_METRICS)


def inputs(given: Samples, facts: Mapping[str, Mapping[str, float]] | None = None, **changes: object) -> ClaimInputs:
    """The input of the claims: `given`, and default values for everything else. `changes` replace some of these."""
    one = {name: {"bytes": 1e6 + number, "servers": 1 + number % 3} for number, name in enumerate(given.sites)}
    defaults = ClaimInputs(given, hypotheses.load(), pd.DataFrame(), RTT_MS, one if facts is None else facts)
    return replace(defaults, **changes)  # type: ignore[arg-type]


def conditions_of(given: ClaimInputs, claim: str, **changes: object) -> list[Condition]:
    """The conditions of the claim of this name. `changes` replace some of the claim's fields."""
    changed = replace(CLAIMS[claim], **changes)  # type: ignore[arg-type]
    return TESTS[changed.test](given, changed)


def verdicts(given: ClaimInputs) -> dict[str, str]:
    table, _ = claims(given)
    return dict(zip(table["claim"], table["verdict"], strict=True))


def without(
    given: Samples, *, networks: tuple[str, ...] = (), protocols: tuple[str, ...] = (), metrics: tuple[str, ...] = ()
) -> Samples:
    """`given` without the named networks, protocols and metrics."""
    values = given.values
    for axis, names, dropped in (
        (0, given.networks, networks),
        (2, given.protocols, protocols),
        (3, given.metrics, metrics),
    ):
        values = np.delete(values, [names.index(name) for name in dropped], axis=axis)
    return Samples(
        values,
        tuple(name for name in given.networks if name not in networks),
        given.sites,
        tuple(name for name in given.protocols if name not in protocols),
        tuple(name for name in given.metrics if name not in metrics),
    )


def test_where_nothing_differs_equivalences_hold_and_leads_do_not() -> None:
    result = verdicts(inputs(campaign({})))
    assert {name for name, verdict in result.items() if verdict == HOLDS} >= {
        "controls_dsl_lte", "tcps_da2gc", "quic_bbr_da2gc"
    }  # fmt: skip
    for name in ("tuning", "quic_dsl", "quic_lte", "quic_da2gc", "quic_mss", "quic_bbr", "handshake"):
        assert result[name] == DOES_NOT_HOLD
    assert result["lead_mss"] == NOT_DECIDED


def test_a_lead_of_one_round_trip_is_the_handshake() -> None:
    result = verdicts(inputs(campaign({"quic": (1, 1), "quic+bbr": (1, 1)}, blocks=12)))
    assert result["handshake"] == result["handshake_dsl_lte"] == HOLDS
    assert result["quic_mss"] == result["quic_bbr"] == HOLDS
    assert result["loss"] == NOT_DECIDED


def test_a_lead_of_some_per_cent_is_not_the_handshake() -> None:
    """This lead also grows with the RTT, by about 1 ms per ms of RTT, since pages take longer on long paths."""
    table, conditions = claims(inputs(campaign({"quic": (0.95, 0)})))
    results = conditions[(conditions["claim"] == "handshake") & conditions["decides"]]
    assert 0.4 < results["value"].iloc[0] < 1.6
    assert results["value"].iloc[1] == pytest.approx(0, abs=0.2)
    assert table.set_index("claim")["verdict"]["handshake"] == DOES_NOT_HOLD


def test_the_slopes_are_the_round_trips_that_are_there() -> None:
    _, conditions = claims(inputs(campaign({"quic": (1, 3)}, noise=1e-6)))
    slopes = conditions[(conditions["claim"] == "handshake") & (conditions["unit"] == "round trips")]
    assert slopes["value"].to_numpy() == pytest.approx(3, abs=0.02)
    assert "on sites of one server" in " ".join(slopes["subject"])


@pytest.mark.slow
def test_how_much_counts_as_one_round_trip_is_what_is_declared() -> None:
    given = inputs(campaign({"quic": (1, 1.4), "quic+bbr": (1, 1.4)}, blocks=12))
    verdict = {}
    for off in (0.1, 0.8):
        declared = replace(given.hypotheses, equivalence_round_trips=off)
        table, conditions = claims(replace(given, hypotheses=declared))
        verdict[off] = table.set_index("claim")["verdict"]["handshake"]
        assert f"{1 - off:g} to {1 + off:g} counts as 1" in set(conditions["limit"].str.split(", and ").str[-1])
    assert verdict == {0.1: DOES_NOT_HOLD, 0.8: HOLDS}


@pytest.mark.slow
def test_leads_that_losses_make_longer() -> None:
    lossy = {"quic": (1.0, [1.0, 1.0, 3.0, 3.0])}
    assert verdicts(inputs(campaign(lossy)))["loss"] == HOLDS
    fewer = {"quic": (1.0, [3.0, 3.0, 1.0, 1.0])}
    assert verdicts(inputs(campaign(fewer)))["loss"] == DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("control", "protocol", "verdict"),
    [(0.7, 0.9, HOLDS), (1.4, 0.9, HOLDS), (0.7, 1.1, HOLDS), (0.9, 0.7, DOES_NOT_HOLD),
     (1.1, 0.7, DOES_NOT_HOLD), (0.9, 1.4, DOES_NOT_HOLD), (0.8, 0.8, NOT_DECIDED), (1.25, 0.8, NOT_DECIDED)],
)  # fmt: skip
def test_what_matters_more_whichever_is_faster(control: float, protocol: float, verdict: str) -> None:
    effects = {"tcp+bbr": (control, 0.0), "quic": (protocol, 0.0), "quic+bbr": (control * protocol, 0.0)}
    results = conditions_of(inputs(campaign(effects)), "controls_mss_plt")
    assert judge(results, 0.01)[0] == verdict


def test_what_matters_more_is_judged_in_blocks_of_all_four() -> None:
    given = campaign({"tcp+bbr": (0.7, 0.0), "quic": (0.9, 0.0), "quic+bbr": (0.63, 0.0)})
    values = given.values.copy()
    # Half of the blocks lack QUIC+BBR; in these blocks TCP+BBR is slow.
    values[:, :, PROTOCOLS.index("quic+bbr"), :, :5] = np.nan
    values[:, :, PROTOCOLS.index("tcp+bbr"), :, :5] *= 3
    results = conditions_of(inputs(replace(given, values=values)), "controls_mss_plt")
    assert results[0].value == pytest.approx(0.7 / 0.9 - 1, abs=0.01)
    assert judge(results, 0.01)[0] == HOLDS


def test_the_interaction_by_hand() -> None:
    effects = {"tcp+bbr": (0.7, 0.0), "quic": (0.64, 0.0), "quic+bbr": (0.6, 0.0)}
    (condition,) = conditions_of(inputs(campaign(effects, noise=1e-9)), "lead_mss")
    assert condition.value == pytest.approx(0.6 / 0.7 / 0.64 - 1, abs=1e-6)
    assert judge([condition], 0.01)[0] == HOLDS


def test_the_interaction_needs_blocks_of_all_four() -> None:
    given = campaign({})
    values = given.values.copy()
    # No block has both QUICs.
    values[:, :, PROTOCOLS.index("quic"), :, ::2] = np.nan
    values[:, :, PROTOCOLS.index("quic+bbr"), :, 1::2] = np.nan
    (condition,) = conditions_of(inputs(replace(given, values=values)), "lead_mss")
    assert condition.missing
    assert judge([condition], 0.01)[0] == NOT_DECIDED


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_claims_on_contrasts_are_seldom_decided_where_there_is_nothing(noise: float) -> None:
    """BBR and QUIC each take 20 % off a page's time, and both together 36 %: there is no interaction, and neither
    matters more."""
    effects = {"tcp+bbr": (0.8, 0.0), "quic": (0.8, 0.0), "quic+bbr": (0.64, 0.0)}
    decided = np.zeros(2)
    campaigns = 150
    for seed in range(campaigns):
        given = inputs(campaign(effects, sites=6, blocks=6, seed=seed, noise=noise))
        results = [conditions_of(given, name) for name in ("lead_mss", "controls_mss_si")]
        decided += [judge(conditions, 0.05, tested=1).verdict != NOT_DECIDED for conditions in results]
    # By chance, 5 % of the 150 campaigns are decided on average, which is 7.5. There are more than 16 once in 700
    # times.
    assert (decided <= 16).all()


def test_a_claim_on_a_contrast_of_the_family_has_both_corrections() -> None:
    given = campaign({"quic": (0.998, 0)})
    family = confirmatory(given, FAMILY, RTT_MS)
    table, conditions = claims(inputs(given, confirmatory=family))
    (row,) = conditions[conditions["claim"] == "quic_dsl"].to_dict("records")
    contrast = family.set_index(["compared", "network", "metric"]).loc[("quic", "dsl", "si")]
    assert row["p_for"] == contrast["p"] < contrast["p_corrected"]
    assert row["p_for_corrected"] == min(1, max(contrast["p_corrected"], len(TESTABLE) * contrast["p"]))
    (claim,) = table[table["claim"] == "quic_dsl"].to_dict("records")
    assert claim["p_corrected"] >= claim["p"]


def test_a_claim_says_no_more_than_the_verdict_on_its_contrast() -> None:
    """The family is larger than the number of claims, so its correction is the stricter one."""
    given = campaign({"quic": (0.9, 0.0)})
    family = confirmatory(given, FAMILY, RTT_MS)
    for corrected, verdict in ((0.011, NOT_DECIDED), (0.009, HOLDS)):
        table = family.assign(p=1e-4, p_corrected=corrected, equivalence_p=1.0, equivalence_p_corrected=1.0)
        conditions = conditions_of(inputs(given, confirmatory=table), "quic_dsl")
        assert judge(conditions, 0.01).verdict == verdict


def test_a_contrast_before_its_first_look_decides_no_claim() -> None:
    given = campaign({"quic": (0.5, 0.0)}, blocks=4)
    family = confirmatory(given, FAMILY, RTT_MS).assign(p=np.nan, p_corrected=1.0, equivalence_p=np.nan)
    table = claims(inputs(given, confirmatory=family.assign(equivalence_p_corrected=1.0)))[0].set_index("claim")
    assert table["verdict"]["quic_dsl"] == NOT_DECIDED and table["p_corrected"]["quic_dsl"] == 1


def test_seldom_is_any_of_all_claims_judged_wrongly() -> None:
    """All claims are false, or all are true: then the p values of the wrong verdict are evenly distributed. If any
    verdict of a campaign is wrong, the one with the smallest p value is."""
    p_values = np.random.default_rng(1).uniform(size=(2000, len(TESTABLE))).min(axis=1)
    for all_false in (True, False):
        one = [(p, 1.0) if all_false else (1.0, p) for p in p_values]
        conditions = [Condition("one", p_for=p_for, p_against=p_against) for p_for, p_against in one]
        is_wrong = [judge([condition], 0.01).verdict != NOT_DECIDED for condition in conditions]
        assert 0.005 <= np.mean(is_wrong) <= 0.0165


def test_a_claim_and_a_contrast_are_held_to_one_bar() -> None:
    """Uncorrected, this claim held with a p value with which a contrast of the family was not decided."""
    condition = Condition("TCP+ against TCP", p_for=0.0019, p_against=1.0)
    judged = judge([condition], 0.01)
    assert (judged.verdict, judged.p) == (NOT_DECIDED, 0.0019)
    assert judged.p_corrected == pytest.approx(0.0019 * len(TESTABLE))
    assert judge([replace(condition, p_for=0.0003)], 0.01).verdict == HOLDS


def test_that_all_conditions_hold_takes_no_correction_for_their_number() -> None:
    conditions = [Condition(str(p), p_for=p, p_against=1.0) for p in (0.0001, 0.0003, 0.0002, 0.00025)]
    judged = judge(conditions, 0.01)
    assert (judged.verdict, judged.p) == (HOLDS, 0.0003)
    assert judged.p_corrected == pytest.approx(0.0003 * len(TESTABLE))


def test_the_least_certain_of_several_numbers_is_named_although_all_corrections_end_at_1() -> None:
    conditions = [Condition(f"number {p}", p_for=p, p_against=1.0) for p in (0.2, 0.7, 0.3)]
    judged = judge(conditions, 0.01)
    assert judged.decisive == conditions[1] and judged.p_corrected == 1


def test_a_condition_that_is_shown_is_no_evidence_against_its_claim() -> None:
    """It is shown to be faster, and by less than the margin."""
    both, open_ = Condition("both", p_for=1e-6, p_against=1e-6), Condition("open", p_for=0.5, p_against=0.5)
    assert judge([both], 0.01).verdict == HOLDS
    assert judge([both, open_], 0.01).verdict == NOT_DECIDED


def test_a_difference_beyond_the_margin_is_shown_as_rarely_as_declared() -> None:
    """The mean is exactly at the margin, which may be small or large for its error."""
    draws = np.random.default_rng(1).standard_normal(4000)
    for margin in (0.1, 1.0, 10.0):
        p_values = [beyond_p(of_numbers(margin + draw, 1.0, 10**6), margin) for draw in draws]
        assert 0.035 <= np.mean(np.array(p_values) < 0.05) <= 0.065
    assert beyond_p(of_numbers(0.2, 0.0, 3), 0.1) == 0.25 and beyond_p(of_numbers(0.0, 0.0, 3), 0.1) == 1


@pytest.mark.slow
def test_controls_that_matter_on_dsl_are_found() -> None:
    result = verdicts(inputs(campaign({"tcp+bbr": ([0.9, 1.0, 1.0, 1.0], 0.0)})))
    assert result["controls_dsl_lte"] == DOES_NOT_HOLD
    # A value exactly at the margin shows neither equivalence nor a difference.
    margin = margins(campaign({}), Pair("tcp+", "tcp+bbr"), hypotheses.load(), RTT_MS)[0, FIGURE_METRICS.index("si")]
    slightly = campaign({"tcp+bbr": ([np.exp(-margin), 1.0, 1.0, 1.0], 0.0)})
    assert verdicts(inputs(slightly))["controls_dsl_lte"] == NOT_DECIDED


def test_gains_that_go_with_size_and_those_that_do_not() -> None:
    draw = np.random.default_rng(5)
    given = campaign({}, sites=30)
    given.values[:, :, PROTOCOLS.index("quic")] *= np.exp(draw.normal(0, 0.05, (4, 30)))[..., None, None]
    size = draw.permutation(30).astype(float)
    facts = {name: {"bytes": size[number], "requests": draw.random()} for number, name in enumerate(given.sites)}
    with_size = given.values.copy()
    with_size[:, :, PROTOCOLS.index("quic")] *= np.exp(-0.02 * size)[None, :, None, None]
    (grown,) = conditions_of(inputs(replace(given, values=with_size), facts), "size_and_structure", facts=("bytes",))
    assert grown.value < -0.9
    assert judge([grown], 0.01)[0] == DOES_NOT_HOLD
    (flat,) = conditions_of(inputs(given, facts), "size_and_structure", facts=("requests",))
    assert flat.low < 0 < flat.high
    assert judge([flat], 0.01)[0] == HOLDS
    (unknown,) = conditions_of(inputs(given, facts), "size_and_structure", facts=("servers",))
    lacks = f"Not decided: the campaign lacks {unknown.missing[0]}."
    assert judge([unknown], 0.01)[:3] == (NOT_DECIDED, lacks, None)


def sized_inputs(gains: Array, size: Array, runs: int, noise: float, seed: int) -> ClaimInputs:
    """Sites with these sizes and the log ratios `gains` (networks x sites). Their runs scatter by `noise`."""
    draw = np.random.default_rng(seed)
    shape = (*gains.shape, 1, runs)
    effects = {"tcp+": np.zeros(gains.shape), "quic": gains}
    times = {name: np.exp(draw.normal(0, noise, shape) + value[..., None, None]) for name, value in effects.items()}
    given = samples(times, NETWORKS, ("si",))
    return inputs(given, {name: {"bytes": size[number]} for number, name in enumerate(given.sites)})


def size_verdict(given: ClaimInputs) -> tuple[str, str]:
    return judge(conditions_of(given, "size_and_structure", facts=("bytes",)), 0.01)[:2]


@pytest.mark.parametrize(("runs", "outlier"), [(3, 0.0), (5, 0.0), (5, 1.0)])
def test_noise_does_not_pass_for_little_influence(runs: int, outlier: float) -> None:
    """Gains depend only on a site's size, and scatter by 2 % between sites. Single runs scatter by 10 %, which hides
    this. One site may be an outlier."""
    results = []
    for seed in range(20):
        size = np.random.default_rng(seed).permutation(38).astype(float)
        gains = np.tile(-0.02 * (size - size.mean()) / size.std(), (4, 1))
        gains[:, 0] += outlier
        results.append(size_verdict(sized_inputs(gains, size, runs, 0.1, seed)))
    assert {verdict for verdict, _ in results} == {NOT_DECIDED}
    assert "% is not the runs', which hides any influence" in results[0][1]


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "scatter"), [(3, 0.05), (5, 0.05), (10, 0.04), (10, 0.06)])
def test_full_influence_is_never_called_little_however_noisy(runs: int, scatter: float) -> None:
    """Gains depend only on a site's size. They are just about as reliable as the claim requires."""
    verdicts = []
    for seed in range(40):
        size = np.random.default_rng(seed).permutation(38).astype(float)
        gains = np.tile(-scatter * (size - size.mean()) / size.std(), (4, 1))
        verdicts.append(size_verdict(sized_inputs(gains, size, runs, 0.1, seed))[0])
    assert HOLDS not in verdicts


def test_no_influence_holds_where_runs_are_many() -> None:
    verdicts = []
    for seed in range(6):
        draw = np.random.default_rng(seed)
        given = sized_inputs(draw.normal(0, 0.05, (4, 38)), draw.permutation(38).astype(float), 31, 0.1, seed)
        verdicts.append(size_verdict(given)[0])
    assert verdicts.count(HOLDS) >= 5 and DOES_NOT_HOLD not in verdicts


@pytest.mark.parametrize("outlier", [0.0, 100.0])
@pytest.mark.parametrize("truth", [0.0, 0.5, 0.8])
def test_reliability_is_the_sites_share_of_the_scatter(truth: float, outlier: float) -> None:
    draw = np.random.default_rng(1)
    sites = 1000
    gains = draw.normal(0, np.sqrt(truth), (2, sites)) + draw.normal(0, np.sqrt(1 - truth), (2, sites))
    gains[:, 0] += outlier
    noise = draw.normal(0, np.sqrt(1 - truth), (50, 2, sites))
    assert reliability(gains, noise) == pytest.approx(truth, abs=0.1)


def test_gains_of_one_block_hide_what_they_go_with() -> None:
    size = np.arange(20.0)
    verdict, sentence = size_verdict(sized_inputs(np.tile(0.1 * size, (4, 1)), size, 1, 0.01, 1))
    assert verdict == NOT_DECIDED and "two blocks of a site" in sentence


@pytest.mark.slow
def test_a_site_whose_metrics_point_in_opposite_directions() -> None:
    given = campaign({"quic": (0.9, 0.0)})
    assert verdicts(inputs(given))["metrics_disagree"] == NOT_DECIDED
    values = given.values.copy()
    values[NETWORKS.index("da2gc"), 3, PROTOCOLS.index("quic"), FIGURE_METRICS.index("vc85")] *= 2
    opposed = replace(given, values=values)
    table = metric_agreement(opposed, Pair("tcp", "quic"), FIGURE_METRICS, hypotheses.load())
    results = table[table["opposite"] > 0]
    assert set(results["network"]) == {"da2gc"}
    assert set(results["opposite_sites"]) == {"s04"}
    assert len(results) == 3 and (results[["metric", "other_metric"]] == "vc85").any(axis=1).all()
    assert verdicts(inputs(opposed))["metrics_disagree"] == HOLDS


def test_a_pair_that_was_not_measured_side_by_side_gives_way_to_the_next() -> None:
    """TCP was added later: no block has both TCP and QUIC, so the claim uses the next pair."""
    given = campaign({"quic": (0.9, 0.0)}, blocks=16)
    values = given.values.copy()
    values[NETWORKS.index("da2gc"), 3, PROTOCOLS.index("quic"), FIGURE_METRICS.index("vc85")] *= 2
    values[:, :, PROTOCOLS.index("tcp"), :, :8] = np.nan
    values[:, :, PROTOCOLS.index("quic"), :, 8:] = np.nan
    result = claims(inputs(replace(given, values=values)))[0].set_index("claim").loc["metrics_disagree"]
    assert result["verdict"] == HOLDS
    assert "QUIC against TCP+" in result["sentence"] and "(s04)" in result["sentence"]


@pytest.mark.slow
def test_the_agreement_of_metrics_is_a_table_of_every_comparison() -> None:
    given = campaign({"quic": (0.9, 0.0)})
    values = given.values.copy()
    values[NETWORKS.index("mss"), 5, PROTOCOLS.index("quic"), FIGURE_METRICS.index("fvc")] *= 2
    values[NETWORKS.index("lte"), :, PROTOCOLS.index("tcp+bbr")] = np.nan
    table = metric_agreements(replace(given, values=values), hypotheses.load(), FIGURE_METRICS)
    of_pairs = table.groupby(["reference", "compared"]).size()
    assert len(of_pairs) == 8
    assert of_pairs["tcp+", "quic"] == 4 * 6 and of_pairs["tcp+bbr", "quic+bbr"] == 3 * 6
    opposite = table[table["opposite"] > 0]
    assert set(opposite["opposite_sites"]) == {"s06"} and set(opposite["network"]) == {"mss"}
    assert set(opposite["metric"]) == {"fvc"} and "quic" in set(opposite["compared"])
    assert (table["correlation_low"] <= table["correlation"]).all()
    assert metric_agreements(without(given, metrics=("fvc", "vc85", "plt")), hypotheses.load(), FIGURE_METRICS).empty


def test_metrics_that_say_the_same() -> None:
    given = campaign({}, noise=1e-4, sites=30)
    values = given.values.copy()
    values[:, :, PROTOCOLS.index("quic")] *= np.exp(np.random.default_rng(1).normal(0, 0.1, 30))[None, :, None, None]
    assert verdicts(inputs(replace(given, values=values)))["metrics_disagree"] == DOES_NOT_HOLD


@pytest.mark.parametrize(
    ("lacking", "claim", "missing"),
    [
        ({"networks": ("lte",)}, "controls_dsl_lte", "network LTE"),
        ({"protocols": ("quic+bbr",)}, "quic_bbr", "protocol QUIC+BBR"),
        ({"metrics": ("fvc", "si", "vc85")}, "quic_dsl", "metric SI"),
        ({"networks": ("lte", "da2gc", "mss")}, "handshake", "a second network"),
        ({"protocols": ("quic",)}, "metrics_disagree", "protocol QUIC"),
    ],
)
def test_what_is_missing_is_said(lacking: dict[str, tuple[str, ...]], claim: str, missing: str) -> None:
    given = inputs(without(campaign({}), **lacking))
    table = claims(given)[0].set_index("claim")
    assert table["verdict"][claim] == NOT_DECIDED
    assert missing in table["missing"][claim]
    assert missing in table["sentence"][claim]


def test_a_network_without_an_rtt_and_sites_without_facts() -> None:
    table = claims(inputs(campaign({}), facts={}, rtt_ms={}))[0].set_index("claim")
    assert "an RTT of DSL" in table["missing"]["handshake_dsl_lte"]
    assert table["verdict"]["size_and_structure"] == NOT_DECIDED


@pytest.mark.parametrize("blocks", [0, 1])
def test_too_few_blocks_decide_nothing(blocks: int) -> None:
    given = campaign({"quic": (0.5, 0.0)}, blocks=1)
    values = given.values if blocks else np.full_like(given.values, np.nan)
    result = verdicts(inputs(replace(given, values=values)))
    assert result["quic_dsl"] == NOT_DECIDED


def test_an_empty_campaign_and_one_site() -> None:
    empty = Samples(np.empty((0, 0, 0, 4, 0)), (), (), (), FIGURE_METRICS)
    assert set(verdicts(inputs(empty)).values()) == {NOT_DECIDED}
    one = campaign({"quic": (0.5, 0.0)}, sites=1)
    assert verdicts(inputs(one))["quic_dsl"] == HOLDS


def test_all_conditions_must_hold_and_one_opposite_is_enough() -> None:
    good, bad, open_ = (
        Condition("good", p_for=1e-9, p_against=1),
        Condition("bad", p_for=1, p_against=0.004 / len(TESTABLE)),
        Condition("open", p_for=0.5, p_against=0.5),
    )
    assert judge([good, good], 0.01)[0] == HOLDS
    assert judge([good, open_], 0.01)[0] == NOT_DECIDED
    assert judge([good, bad], 0.01)[0] == DOES_NOT_HOLD
    # Corrected for three conditions, a p value of 0.004 (corrected for the claims) is not significant at 0.01.
    assert judge([good, bad, good], 0.01)[0] == NOT_DECIDED
    assert judge([good, replace(bad, decides=False)], 0.01)[0] == HOLDS
    lacking = Condition("lacking", missing=("network LTE",))
    assert judge([good, lacking], 0.01)[:3] == (NOT_DECIDED, "Not decided: the campaign lacks network LTE.", None)
    assert judge([replace(bad, p_against=1e-5), lacking], 0.01)[0] == DOES_NOT_HOLD


def test_the_tables() -> None:
    table, conditions = claims(inputs(campaign({})))
    assert table["claim"].tolist() == list(CLAIMS)
    assert table["claim"].is_unique
    assert table["sentence"].str.match(r"(Holds|Does not hold|Not decided): .*\.$").all()
    assert not table["sentence"].str.contains("nan").any()
    assert set(conditions["claim"]) == set(table["claim"])
    measured = conditions[conditions["missing"] == ""]
    has_interval = measured[["value", "low", "high"]].notna().all(axis=1)
    assert has_interval.all()
    assert (measured["low"] <= measured["value"]).all() and (measured["value"] <= measured["high"]).all()


def test_each_claim_stands_beside_the_papers_number_and_what_ours_rests_on() -> None:
    table, _ = claims(inputs(campaign({}, blocks=12)))
    by_name = table.set_index("claim")
    assert by_name["number"]["quic_mss"] == "QUIC against TCP+ in SI: MSS -36 %"
    assert by_name["number"]["quic_bbr_da2gc"].endswith("DA2GC 0 of 38 sites faster")
    assert by_name["number"]["tcps_da2gc"] == ""
    # `quic_mss` counts the runs of two protocols on one network, `lead_mss` those of four protocols, and
    # `handshake_dsl_lte` those of two protocols on two networks.
    sites = by_name["sites"]["quic_mss"]
    assert by_name["runs"]["quic_mss"] == 2 * 12 * sites
    assert by_name["runs"]["lead_mss"] == 4 * 12 * sites
    assert by_name["runs"]["handshake_dsl_lte"] == 2 * 2 * 12 * sites


def test_each_number_beside_a_claim_says_how_many_runs_it_rests_on_itself() -> None:
    given = campaign({}, sites=9, blocks=12)
    # The first site was not measured on DSL. It has one server, as every third site has.
    given.values[NETWORKS.index("dsl"), 0] = np.nan
    _, conditions = claims(inputs(given))
    of_claim = conditions[conditions["claim"] == "handshake_dsl_lte"].set_index("subject")
    (one_server,) = (name for name in of_claim.index if name.endswith("on sites of one server"))
    (over_all,) = (name for name in of_claim.index if "in ms per ms of RTT, over" in name)
    (shares,) = (name for name in of_claim.index if "as shares" in name)
    (dsl,) = (name for name in of_claim.index if "on DSL" in name)
    (lte,) = (name for name in of_claim.index if "on LTE" in name)
    runs = 2 * 12  # of both protocols, on a network
    assert of_claim["sites"][[one_server, over_all, shares, dsl, lte]].tolist() == [2, 8, 8, 8, 9]
    assert of_claim["runs"][[one_server, over_all, shares, dsl, lte]].tolist() == [
        2 * 2 * runs,
        8 * 2 * runs,
        8 * 2 * runs,
        8 * runs,
        9 * runs,
    ]


def test_how_many_claims_hold_is_counted() -> None:
    table = pd.DataFrame({"verdict": [HOLDS, HOLDS, DOES_NOT_HOLD, NOT_DECIDED]})
    text = "2 of 4 claims of the paper hold in this campaign, 1 does not hold, and 1 is not decided, "
    assert balance_of(table, 9, 1) == f"{text}by 9 runs that count, of 1 site."


def test_later_claims_change_nothing_about_those_that_a_campaign_declared() -> None:
    given = campaign({"quic": (0.98, 0.0), "quic+bbr": (0.98, 0.0)}, blocks=4)
    results = {}
    # Claims of 14:00 UTC were there at 14:30 UTC, and not an hour earlier, wherever the clock was.
    texts = ("", "2026-11-26T01:14:00+0000", "2027-01-01T00:00:00+0000")
    for declared_at in (*texts, "2026-11-30T23:30:00+1000", "2026-11-30T04:30:00-1000", "then"):
        declared = replace(hypotheses.load(), origin=Origin(declared_at=declared_at))
        results[declared_at] = claims(inputs(given, hypotheses=declared))[0].set_index("claim")
    never, before, after, early, late, unknown = results.values()
    for table, same in ((early, before), (late, after), (unknown, never)):
        pd.testing.assert_frame_equal(table, same)
    assert before["p_corrected"]["lead_mss"] == pytest.approx(min(1, 17 * before["p"]["lead_mss"]))
    assert after["p_corrected"]["lead_mss"] == pytest.approx(min(1, len(TESTABLE) * after["p"]["lead_mss"]))
    later, is_later = "quics_start_ahead_mss", "; post hoc, since the claim was declared after the campaign."
    for table in results.values():
        assert table["p_corrected"][later] == pytest.approx(min(1, len(TESTABLE) * table["p"][later]))
    assert before["sentence"][later].endswith(is_later)
    assert not any(table["sentence"].str.endswith(is_later).any() for table in (never, after))
    assert not before["sentence"]["lead_mss"].endswith(is_later)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, HOLDS), (1.1, DOES_NOT_HOLD)])
def test_a_metric_that_says_what_another_says(factor: float, verdict: str) -> None:
    """Over QUIC, page load times are 20 % shorter, and the other metric's as much, or by a tenth less."""
    given = campaign({"quic": (0.8, 0.0)}, blocks=10)
    given.values[:, :, PROTOCOLS.index("quic"), FIGURE_METRICS.index("vc85")] *= factor
    changes = {"metrics": ("vc85/plt",), "pairs": (Pair("tcp+", "quic"),)}
    conditions = conditions_of(inputs(given), "lvc_as_plt", **changes)
    assert judge(conditions, 0.01).verdict == verdict
    assert conditions[0].subject == "QUIC against TCP+ on DSL in VC85/PLT"
    assert conditions[0].value == pytest.approx(factor - 1, abs=0.01)
    (lacking, *_) = conditions_of(inputs(without(given, metrics=("plt",))), "lvc_as_plt", **changes)
    assert lacking.missing == ("metric PLT",)


@pytest.mark.parametrize(("factor", "verdict"), [(0.5, HOLDS), (1.2, DOES_NOT_HOLD), (0.9, NOT_DECIDED)])
def test_a_lead_that_grows_in_the_course_of_a_load(factor: float, verdict: str) -> None:
    """TCP+BBR takes 10 % off the first visual change, and off the page load time as given."""
    given = campaign({"tcp+bbr": (0.9, 0.0)})
    given.values[:, :, PROTOCOLS.index("tcp+bbr"), FIGURE_METRICS.index("plt")] *= factor / 0.9
    lead, share = conditions_of(inputs(given), "lead_grows_mss")
    assert judge([lead, share], 0.01).verdict == verdict
    assert share.value == pytest.approx(factor / 0.9 - 1, abs=0.01) and not share.decides
    typical_ms = np.nanmean(given.values[-1, :, PROTOCOLS.index("tcp+"), FIGURE_METRICS.index("plt")])
    assert lead.value == pytest.approx((0.9 - factor) * typical_ms / RTT_MS["mss"], rel=0.05, abs=0.1)


def scattered(sites: int, spreads: tuple[float, float], seed: int, blocks: int = 6) -> ClaimInputs:
    """Changes of TCP+BBR and QUIC+BBR against TCP that scatter over the sites with these standard deviations, about
    means of 0 and -20 %."""
    draw = np.random.default_rng(seed)
    given = campaign({}, sites=sites, blocks=blocks, seed=seed, noise=0.03)
    common = draw.normal(0, 1, sites)
    for name, spread, place in zip(("tcp+bbr", "quic+bbr"), spreads, (0.0, -0.2), strict=True):
        log_ratios = place + spread * (0.6 * common + 0.8 * draw.normal(0, 1, sites))
        given.values[:, :, PROTOCOLS.index(name)] *= np.exp(log_ratios)[None, :, None, None]
    return inputs(given)


def test_curves_of_one_shape_and_of_two() -> None:
    alike, other = (
        judge(conditions_of(scattered(120, spreads, 3), "curves_alike_mss"), 0.01)
        for spreads in ((0.2, 0.2), (0.1, 0.3))
    )
    assert (alike.verdict, other.verdict) == (HOLDS, DOES_NOT_HOLD)
    noisy = conditions_of(scattered(20, (0.001, 0.001), 3), "curves_alike_mss")
    assert noisy[0].missing == (f"gains that scatter more with the sites than with the runs: {noisy[0].subject}",)


@pytest.mark.slow
def test_curves_at_the_margin_are_as_seldom_called_alike_as_declared() -> None:
    """One scatters 1.5 times as much as the other, which is just no longer alike."""
    verdicts = [
        judge(conditions_of(scattered(38, (0.2, 0.3), seed, 3), "curves_alike_mss"), 0.05, tested=1).verdict
        for seed in range(150)
    ]
    # 5 % of 150 are 7.5; more than 16 come once in 700 times.
    assert verdicts.count(HOLDS) <= 16 and verdicts.count(DOES_NOT_HOLD) <= 16


def test_a_few_sites_that_gain_far_more() -> None:
    given = campaign({"quic": (0.9, 0.0)})
    (first, *_) = same = conditions_of(inputs(given), "few_gain_more")
    assert judge(same, 0.01).verdict == DOES_NOT_HOLD
    assert first.value == pytest.approx(0.9 / 0.81 - 1, abs=0.02)
    given.values[:2, 4, PROTOCOLS.index("quic")] *= 0.7
    more = conditions_of(inputs(given), "few_gain_more")
    assert judge(more, 0.01).verdict == HOLDS and "the change of s05 beyond" in more[0].subject
    # The metric is another one.
    values = given.values.copy()
    values[:2, 4, PROTOCOLS.index("quic"), FIGURE_METRICS.index("vc85")] /= 0.7
    assert judge(conditions_of(inputs(replace(given, values=values)), "few_gain_more"), 0.01).verdict == DOES_NOT_HOLD


@pytest.mark.slow
def test_sites_that_gain_alike_are_seldom_said_to_gain_far_more() -> None:
    """No site gains anything, which is just not more than the others do."""
    verdicts = [
        judge(conditions_of(inputs(campaign({}, blocks=3, seed=seed)), "few_gain_more"), 0.05, tested=1).verdict
        for seed in range(60)
    ]
    assert verdicts.count(HOLDS) <= 7


def test_an_influence_on_one_network_is_not_averaged_away() -> None:
    draw = np.random.default_rng(5)
    size = draw.permutation(30).astype(float)
    gains = draw.normal(0, 0.02, (4, 30))
    gains[0] -= 0.02 * size
    given = sized_inputs(gains, size, 10, 0.01, 1)
    facts = {site: {"loaded_bytes": of["bytes"]} for site, of in given.site_facts.items()}
    conditions = conditions_of(replace(given, site_facts=facts), "size_and_structure_loaded", facts=("loaded_bytes",))
    assert len(conditions) == 4 and "with loaded bytes on DSL" in conditions[0].subject
    assert conditions[0].value < -0.9 and abs(conditions[1].value) < 0.5
    assert judge(conditions, 0.01).verdict == DOES_NOT_HOLD


def test_a_claim_that_no_campaign_can_test_says_what_it_needs() -> None:
    judged = judge(conditions_of(inputs(campaign({}, blocks=2)), "ack_ranges"), 0.01)
    assert judged.verdict == NOT_DECIDED and "how many losses each acknowledgement reports" in judged.sentence
