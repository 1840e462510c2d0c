"""Comparison of two campaigns: a known change is shown, and a change of the machine is not mistaken for it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy import stats
from support.analysis_truth import FALSE_ALARM, same_campaigns
from support.axe import accessible
from support.browser import Browser
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.campaign_changes import (
    LOST,
    SLOW,
    CampaignChange,
    Counts,
    compare,
    more_often,
    share_changes,
    slow_loads,
)
from analysis.report.changes import INDEX, document, sentences, write
from analysis.runs import CampaignTable
from analysis.statistics.samples import Array
from base.errors import EyelevelError
from dataset.table import WITHDRAWN
from eyelevel import simulate
from eyelevel.commands.compare import main
from studies import STUDIES

WORLD = World(sites=5, runs=10, blocks=0.0)
SAME_CAMPAIGNS = 12
# Campaigns before and after a release: 8 sites, 15 runs, without noise of their own (`release` adds it).
RELEASE = World(sites=8, runs=15, scatter=0.0, blocks=0.0)
PROTOCOLS = ("tcp", "tcp+", "quic")
SIMULATED = 150
DECLARED = hypotheses.load()


def changed(a: CampaignTable, b: CampaignTable, worse_than: float = 0.02) -> CampaignChange:
    return compare(a, b, hypotheses.load().restricted_to(a.protocols, a.metrics), worse_than)


def slower(table: CampaignTable, share: float, protocols: tuple[str, ...], canary: float = 0.0) -> CampaignTable:
    """`table` with further noise. Times of `protocols` are longer by `share`, and those of canaries by `canary` (both
    are shares)."""
    draw = np.random.default_rng(2)
    runs = table.runs.copy()
    factor = np.where(runs["protocol"].isin(protocols), 1 + share, 1) * np.exp(draw.normal(0, 0.05, len(runs)))
    runs[["si", "plt"]] = runs[["si", "plt"]].mul(factor, axis=0)
    return replace(table, runs=runs.assign(canary_cpu_ms=runs["canary_cpu_ms"] * (1 + canary)))


@pytest.fixture(scope="module")
def before() -> CampaignTable:
    return campaign(WORLD, 1)


def test_only_the_protocol_that_became_slower_is_worse(before: CampaignTable) -> None:
    change = changed(before, slower(before, 0.15, ("quic",)))
    assert change.is_worse
    over = change.over_sites
    assert set(over.loc[over["worse"], "protocol"]) == {"quic"}
    assert set(change.sites.loc[change.sites["worse"], "protocol"]) <= {"quic"}
    assert over.loc[over["protocol"] == "quic", "change"].to_numpy() == pytest.approx(0.15, abs=0.05)
    contrast = change.contrasts[change.contrasts["compared"] == "quic"]
    assert contrast["change"].to_numpy() == pytest.approx(0.15, abs=0.06)
    assert not changed(before, slower(before, 0.15, ("quic",)), worse_than=0.3).is_worse


def test_a_machine_that_is_as_much_slower_as_its_canary_is_no_regression(before: CampaignTable) -> None:
    everything = before.protocols
    assert changed(before, slower(before, 0.15, everything)).is_worse
    change = changed(before, slower(before, 0.15, everything, canary=0.15))
    assert not change.is_worse
    assert change.allowance == pytest.approx(0.15, abs=0.02)
    assert not change.over_sites["beyond_canary"].any()
    # A slowdown of all protocols alike cancels within blocks.
    assert (change.contrasts["p_corrected"] > 0.01).all()


def test_without_a_canary_nothing_is_known_beyond_it(before: CampaignTable) -> None:
    bare = replace(before, runs=before.runs.drop(columns="canary_cpu_ms"))
    change = changed(bare, slower(before, 0.0, ()))
    assert change.allowance is None
    assert change.over_sites["beyond_canary"].isna().all()


def test_what_has_nothing_in_common_is_refused(before: CampaignTable) -> None:
    others = replace(before, runs=before.runs.assign(site="other-" + before.runs["site"]))
    with pytest.raises(EyelevelError, match="no sites in common"):
        changed(before, others)


def test_each_setting_that_differs_is_a_difference_and_other_recordings_are_named(before: CampaignTable) -> None:
    sites = {name: {"sha256": "1"} for name in before.settings.sites}
    settings = [replace(before.settings, sites=sites | {"s01": {"sha256": digest}}, seed=5) for digest in "12"]
    a, b = (replace(before, document=replace(before.document, settings=one)) for one in settings)
    change = changed(a, b)
    assert change.differences.to_numpy().tolist() == [["settings sites s01 sha256", "1", "2"]]
    assert "The recordings of s01 are not the same in A and B: these are other pages." in sentences(change)


def release(lost: Mapping[str, float], slow: Mapping[str, float], noise: int) -> CampaignTable:
    """A campaign of the same pages on LTE. `lost`, `slow`: protocol → share of loads that are lost, or take six times
    as long; `noise` is the seed of its runs' noise."""
    table = campaign(RELEASE, 1)
    draw = np.random.default_rng(noise)
    runs = table.runs[table.runs["network"] == "lte"].copy()
    factor = np.exp(draw.normal(0, 0.05, len(runs)))
    factor *= np.where(draw.random(len(runs)) < runs["protocol"].map(slow).fillna(0), 6, 1)
    is_lost = draw.random(len(runs)) < runs["protocol"].map(lost).fillna(0)
    runs[["si", "plt"]] = runs[["si", "plt"]].mul(factor, axis=0).where(~is_lost)
    return replace(table, runs=runs.assign(valid=~is_lost, reason=np.where(is_lost, "over_time: was cut off", "")))


def alike(share: float) -> dict[str, float]:
    return dict.fromkeys(PROTOCOLS, share)


def worse_shares(change: CampaignChange) -> set[tuple[str, str]]:
    worse = change.shares[change.shares["worse"]]
    return set(zip(worse["kind"], worse["protocol"], strict=True))


@pytest.mark.parametrize("noise", [11, 12, 13])
def test_a_release_that_loses_one_load_in_five_is_worse(noise: int) -> None:
    change = changed(release({}, {}, noise), release({"quic": 0.2}, {}, noise + 10))
    assert worse_shares(change) == {(LOST, "quic")}
    assert change.is_worse
    assert not change.over_sites["worse"].any()
    first = sentences(change)[0]
    assert first.startswith("B is worse: typical loads are not shown to be slower")
    assert "; slow loads are not shown to be more frequent" in first
    assert "; lost loads are shown to be more frequent in B: QUIC on LTE (0 of 120 in A, " in first


@pytest.mark.parametrize("noise", [11, 12, 13])
def test_a_release_with_a_slow_load_in_twelve_is_worse(noise: int) -> None:
    change = changed(release({}, {}, noise), release({}, {"quic": 1 / 12}, noise + 10))
    assert worse_shares(change) == {(SLOW, "quic")}
    assert change.is_worse
    first, second, *_ = sentences(change)
    assert "; slow loads are shown to be more frequent in B: QUIC on LTE (0 of 120 in A, " in first
    means = change.over_sites.set_index(["protocol", "metric"])["mean_change"]
    assert means["quic", "si"] > 0.2
    assert second.startswith("The arithmetic mean, which slow loads raise, changes: QUIC on LTE (SI +")


@pytest.mark.parametrize(
    "shares", [(alike(0.05), {}), ({}, alike(1 / 12))], ids=["one load in twenty lost", "one in twelve slow"]
)
def test_equal_campaigns_with_lost_or_slow_loads_are_no_regression(
    shares: tuple[Mapping[str, float], Mapping[str, float]],
) -> None:
    change = changed(release(*shares, 21), release(*shares, 22), worse_than=0.05)
    assert not change.is_worse
    assert sentences(change)[0].startswith("No regression is shown: typical loads are not shown to be slower")
    assert document(change)["outcome"] == "no regression shown"
    # The same twice over: fewer lost or slow loads in B are no regression.
    assert not worse_shares(changed(release(*shares, 21), release({}, {}, 22)))


def test_a_campaign_of_which_all_is_lost_is_worse() -> None:
    change = changed(release({}, {}, 1), release(alike(1.0), {}, 2))
    assert worse_shares(change) == {(LOST, name) for name in PROTOCOLS}
    first = sentences(change)[0]
    assert first.startswith("B is worse: typical loads could not be compared; slow loads could not be counted in both;")
    both = changed(release(alike(1.0), {}, 1), release(alike(1.0), {}, 2))
    assert sentences(both)[0].startswith("No regression is shown: typical loads could not be compared;")
    # A protocol that lost all its loads is compared, and is no protocol of A alone.
    assert not changed(release({}, {}, 1), release({"quic": 1.0}, {}, 2)).unmatched


def test_loads_of_a_site_that_was_withdrawn_are_not_lost() -> None:
    a, b = release({}, {}, 1), release({}, {}, 2)
    is_withdrawn = b.runs["site"] == "s01"
    reasons = np.where(is_withdrawn, f"{WITHDRAWN}: its owner asked", "")
    change = changed(a, replace(b, runs=b.runs.assign(valid=~is_withdrawn, reason=reasons)))
    assert not worse_shares(change)
    assert change.unmatched == ("sites of A alone, which are not compared: s01",)


def test_what_the_machine_makes_slower_is_no_slow_load() -> None:
    """All loads of B are slower by what is allowed."""
    draw = np.random.default_rng(3)
    a, b = (np.exp(draw.normal(0, 0.5, (1, 12, 1, 1, 40))) for _ in "ab")
    (_, alike), (_, allowed), (_, ignored) = (
        [counts[0].sum() for counts in slow_loads(a, factor * b, by)] for factor, by in ((1, 1), (1.3, 1.3), (1.3, 1))
    )
    assert alike == allowed < ignored


def test_numbers_are_compared_within_sites() -> None:
    # Without sites, Fisher's exact test.
    a, b = np.array([[3], [40]]), np.array([[11], [30]])
    fisher = stats.fisher_exact([[11, 19], [3, 37]], alternative="greater").pvalue
    assert more_often(a, b)[0] == pytest.approx(fisher)
    # The bad site loses half of its loads in both; B has measured it more often.
    a, b = np.array([[0, 5], [100, 10]]), np.array([[0, 50], [10, 100]])
    assert stats.fisher_exact([[50, 60], [5, 105]], alternative="greater").pvalue < 1e-9
    assert more_often(a, b)[0] > 0.4
    # Nothing was found, so nothing else could come out.
    assert more_often(np.array([[0], [9]]), np.array([[0], [7]])) == (1.0, 1.0)


def times(draw: np.random.Generator, slow: Sequence[float], sites: int = 8, runs: int = 15) -> Array:
    """SI and PLT of three protocols on one network. `slow`: the share of each protocol's loads that take six times as
    long."""
    is_slow = draw.random((1, sites, len(slow), 1, runs)) < np.asarray(slow)[:, None, None]
    noise = np.exp(draw.normal(0, 0.05, (1, sites, len(slow), 2, runs)))
    return np.asarray(1000 * noise * np.where(is_slow, 6, 1))


def lost(draw: np.random.Generator, share: float, sites: int = 8, runs: int = 15) -> Counts:
    """The numbers of lost loads and of all loads of three protocols on one network."""
    shape = (1, sites, len(PROTOCOLS))
    return np.stack([draw.binomial(runs, share, shape), np.full(shape, runs)])


def is_alarm(a: Array, b: Array, lost_a: Counts, lost_b: Counts) -> bool:
    by_kind = {SLOW: slow_loads(a, b, 1.0), LOST: (lost_a, lost_b)}
    return bool(share_changes(by_kind, ["lte"], PROTOCOLS, DECLARED, 0.05)["worse"].any())


@pytest.mark.parametrize(("slow", "lost_share"), [(1 / 12, 0.0), (0.0, 0.05), (1 / 12, 0.05)])
def test_equal_campaigns_with_slow_or_lost_loads_seldom_alarm(slow: float, lost_share: float) -> None:
    draw = np.random.default_rng(43)
    alarms = 0
    for _ in range(SIMULATED):
        a, b = (times(draw, [slow] * 3) for _ in "ab")
        alarms += is_alarm(a, b, lost(draw, lost_share), lost(draw, lost_share))
    # Fewer than a correct test with the declared level could make by chance; the test is exact, so it makes fewer.
    assert alarms <= stats.binom.ppf(1 - FALSE_ALARM, SIMULATED, DECLARED.significant_p), alarms


def test_one_slow_load_in_twelve_is_found_nearly_always() -> None:
    draw, none = np.random.default_rng(44), np.zeros((2, 1, 8, 3), dtype=np.int64)
    alarms = 0
    for _ in range(SIMULATED):
        a, b = (times(draw, [0, 0, slow]) for slow in (0, 1 / 12))
        alarms += is_alarm(a, b, none, none)
    # Seven or more of 120 loads must be slow if A has none: the probability is 88 %.
    expected = stats.binom.sf(6, 120, 1 / 12)
    assert stats.binom.ppf(FALSE_ALARM, SIMULATED, expected) <= alarms, alarms


def test_protocols_without_slow_or_lost_loads_cost_the_others_nothing() -> None:
    none, seven = np.array([0, 0, 0]), np.array([0, 0, 7])
    a, b = (np.stack([some, np.full(3, 120)])[:, None, None] for some in (none, seven))
    table = share_changes({LOST: (a, b)}, ["lte"], PROTOCOLS, DECLARED, 0.05)
    assert table["worse"].tolist() == [False, False, True]
    assert table["worse_p_corrected"].isna().tolist() == [True, True, False]
    # 0 of 120 shows that the share is larger by less than five percentage points; 7 more do not.
    assert table["within"].tolist() == [True, True, False]


@pytest.mark.needs_axe
def test_everybody_can_read_the_page(before: CampaignTable, browser: Browser, tmp_path: Path) -> None:
    newer = replace(before.document, versions={"chromium": "new"})
    after = replace(slower(before, 0.15, ("quic",), canary=0.01), document=newer)
    for change in (changed(before, after), changed(before, before)):
        assert accessible(browser, (write(change, tmp_path / "compare") / INDEX).as_uri()) == []


def of_study(folder: Path, name: str) -> Path:
    """The simulated campaign in `folder`, turned into one of the study `name`."""
    document = json.loads((folder / "campaign.json").read_text())
    (folder / "campaign.json").write_text(json.dumps({**document, "study": {"name": name}}))
    return folder


@pytest.mark.slow
def test_studies_of_page_loads_are_compared_and_others_are_refused_with_the_reason(tmp_path: Path) -> None:
    truth = simulate.Truth(sites=2, networks=("lte",), protocols=("tcp", "quic"), runs=5)
    pages, other_pages, *folders = (simulate.write(tmp_path / name, truth) for name in "pqab")

    def compared(a: Path, b: Path) -> Result:
        return CliRunner().invoke(main, ["--a", str(a), "--b", str(b)])

    for study in STUDIES:
        a, b = (of_study(folder, study.name) for folder in folders)
        result = compared(a, b)
        if study.no_page_times:
            assert study.no_page_times in str(result.exception), study.name
        else:
            assert result.exit_code == 0, (study.name, result.output)
    assert {study.name for study in STUDIES if study.no_page_times} == {"downloads", "fairness", "video"}
    grid = of_study(folders[0], "grid")
    assert "p is of pages, a is of the study grid" in str(compared(pages, grid).exception)
    unknown = [of_study(folder, "of-tomorrow") for folder in (pages, other_pages)]
    assert "which this version does not know" in str(compared(*unknown).exception)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["lognormal", "heavy"])
def test_two_campaigns_of_the_same_are_seldom_told_apart(noise: str) -> None:
    """One of two equal campaigns is seldom called worse, even if no slowdown is tolerated.

    `tests/proof/test_compare_rates.py` repeats this a thousand times.
    """
    truth = simulate.Truth(sites=4, networks=("lte",), protocols=("tcp+", "quic"), runs=6, noise=noise)
    changes = [changed(*same_campaigns(truth, number), worse_than=0) for number in range(SAME_CAMPAIGNS)]
    alarms = sum(change.is_worse for change in changes)
    # Three of the twelve are called worse once in 600 times; at p < 0.5 instead of the declared level, three were.
    assert alarms <= stats.binom.ppf(0.998, SAME_CAMPAIGNS, changes[0].false_alarm_share) == 2, alarms


@pytest.mark.slow
def test_command_says_it_by_its_status_and_as_json(tmp_path: Path) -> None:
    truth = simulate.Truth(sites=2, networks=("lte",), protocols=("tcp", "quic"), runs=8)
    a, b = (simulate.write(tmp_path / name, truth) for name in "ab")
    rows = pd.read_csv(b / "runs.csv", dtype=str, keep_default_na=False)
    for name in ("si", "plt"):
        rows[name] = (rows[name].astype(float) * 1.3).map(str)
    rows.to_csv(b / "runs.csv", index=False)
    document = json.loads((b / "campaign.json").read_text())
    document["versions"] = {"chromium": "new"}
    (b / "campaign.json").write_text(json.dumps(document))
    result = CliRunner().invoke(main, ["--a", str(a), "--b", str(b)])
    assert result.exit_code == 3, result.output
    assert "result: B is worse (exit status 3" in result.output
    of_make = CliRunner(env={"MAKELEVEL": "1"}).invoke(main, ["--a", str(a), "--b", str(b)])
    last = (
        "result: B is worse (exit status 3; make calls it an error and returns 2, so in CI call 'eyelevel compare')\n"
    )
    assert of_make.output.endswith(last)
    assert "slow loads" in result.output
    answer = json.loads((b / "compare" / "a" / "compare.json").read_text())
    assert answer["outcome"] == "worse"
    assert {"what": "versions chromium", "a": "-", "b": "new"} in answer["differences"]
    assert "nothing is paired" in (b / "compare" / "a" / "index.html").read_text()
    # 16 loads are too few to show that losses grow by less than five percentage points.
    for options, status in (([], 0), (["--decide"], 4), (["--decide", "--worse-than", "900%"], 0)):
        assert CliRunner().invoke(main, ["--a", str(b), "--b", str(a), *options]).exit_code == status, options
    assert CliRunner().invoke(main, ["--a", str(b), "--b", str(a), "--nonsense"]).exit_code == 2
    refusal = CliRunner().invoke(main, ["--a", str(a), "--b", str(b), "--worse-than", "5"])
    assert isinstance(refusal.exception, EyelevelError)


def test_loads_without_a_time_leave_a_comparison_open() -> None:
    a = campaign(WORLD, 1)
    b = replace(
        a, runs=a.runs.assign(si=a.runs["si"].mask((a.runs["run"] % 4 == 0) & a.runs["protocol"].eq("quic"), 0))
    )
    change = changed(a, b, worse_than=0.5)
    assert changed(a, a, worse_than=0.5).is_decided
    assert not change.is_worse and not change.is_decided
    text = " ".join(sentences(change))
    assert "times are left out, since too many loads lack them (see below)." in text
    assert "In B: SI is 0 or missing in loads that count. It is in 20.0 % of QUIC's on DSL (10 of 50)" in text
