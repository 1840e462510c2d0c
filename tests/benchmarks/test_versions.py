"""The comparison of two versions (`benchmarks.versions`): simulated runs with known truth, and the order of
campaigns."""

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from base.errors import EyelevelError
from base.places import PROJECT
from benchmarks.versions.campaigns import AFTER, BEFORE, Plan, checkout, git, keep_plan, resolve, turns
from benchmarks.versions.comparison import (
    DIFFERENT,
    EQUIVALENT,
    METRICS,
    OPEN,
    blocks_needed,
    choice_of_sites,
    deviation_ratio,
    exclusions,
    mean_ratio,
    pairs_of,
    results,
    robust_ratio,
)

PLAN = Plan("a" * 40, "b" * 40, ("s", "t"), ("dsl", "lte"), ("tcp+", "quic"), seed=7, blocks=10)


def made_up(
    ratio: float = 1.0, deviation: float = 0.02, deviation_after: float | None = None, blocks: int = 20, seed: int = 1
) -> pd.DataFrame:
    """Runs of two versions; the second takes `ratio` times as long; each setting has its own typical time."""
    random = np.random.default_rng(seed)
    deviations = {BEFORE: deviation, AFTER: deviation_after or deviation}
    rows = []
    for number, site, network in (
        (n, s, net) for n in range(1, blocks + 1) for s in PLAN.sites for net in PLAN.networks
    ):
        for protocol in PLAN.protocols:
            typical_ms = 500 * (1 + PLAN.sites.index(site)) * (1 + PLAN.networks.index(network))
            for version, scatter in deviations.items():
                share = ratio if version == AFTER else 1.0
                times = {metric: typical_ms * share * np.exp(scatter * random.standard_normal()) for metric in METRICS}
                keys = {"site": site, "network": network, "protocol": protocol, "run": 1, "pair": number}
                rows.append({**keys, "version": version, "valid": True, "reason": "", **times})
    return pd.DataFrame(rows)


def of_metric(runs: pd.DataFrame, metric: str = "si") -> pd.DataFrame:
    pairs = pairs_of(runs, BEFORE, AFTER)
    return pairs[pairs["metric"] == metric]


@pytest.mark.slow
def test_versions_that_are_the_same_are_equivalent_in_every_metric() -> None:
    table = results(pairs_of(made_up(), BEFORE, AFTER))
    assert list(table["network"].unique()) == ["dsl", "lte", "all"]
    assert set(table["verdict"]) == {EQUIVALENT}
    assert list(table[table["network"] == "all"]["pairs"]) == [160] * len(METRICS)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.05, DIFFERENT), (0.95, DIFFERENT), (1.02, OPEN)])
def test_a_true_difference_is_seen(ratio: float, verdict: str) -> None:
    interval = mean_ratio(of_metric(made_up(ratio)))
    assert interval.verdict == verdict
    assert interval.low < ratio < interval.high
    assert interval.estimate == pytest.approx(ratio, abs=0.01)


def test_the_interval_is_that_of_a_paired_t_test() -> None:
    pairs = of_metric(made_up())
    expected = stats.ttest_1samp(pairs["ratio"], 0).confidence_interval(0.9)
    interval = mean_ratio(pairs)
    assert np.log([interval.low, interval.high]) == pytest.approx([expected.low, expected.high])


def test_settings_weigh_the_same_when_one_has_lost_runs() -> None:
    runs = made_up(deviation=1e-6)
    slow = (runs["site"] == "s") & (runs["version"] == AFTER)
    runs.loc[slow, "si"] *= 1.1
    lost = (runs["site"] == "s") & (runs["pair"] > 5)
    assert mean_ratio(of_metric(runs[~lost])).estimate == pytest.approx(1.1**0.5, rel=1e-4)


def test_one_odd_run_hardly_moves_the_robust_ratio() -> None:
    runs = made_up(deviation=0.005)
    runs.loc[runs.index[1], "si"] *= 20
    assert mean_ratio(of_metric(runs)).verdict == OPEN
    assert robust_ratio(of_metric(runs)).verdict == EQUIVALENT


def test_pairs_need_both_runs_and_times_above_zero() -> None:
    runs = made_up(blocks=3)
    whole = len(of_metric(runs))
    runs.loc[runs.index[0], "valid"] = False
    runs.loc[runs.index[2], "si"] = 0.0
    runs.loc[runs.index[5], "si"] = np.nan
    assert len(of_metric(runs)) == whole - 3
    assert len(of_metric(runs, "plt")) == whole - 1


@pytest.mark.parametrize(("after", "truth"), [(0.02, 1.0), (0.04, 2.0), (0.01, 0.5)])
def test_the_ratio_of_deviations_is_within_its_interval(after: float, truth: float) -> None:
    interval = deviation_ratio(of_metric(made_up(deviation_after=after)))
    assert interval.low < truth < interval.high
    assert interval.high / interval.low < 1.6


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say_also_for_long_tails() -> None:
    """For runs with Student's distribution of five degrees of freedom, an F test of deviations would be too bold."""
    random = np.random.default_rng(3)
    keys = pd.DataFrame(
        [
            {"network": "lte", "site": f"s{s}", "protocol": "quic", "pair": n, "run": 1}
            for s in range(6)
            for n in range(20)
        ]
    )
    held = 0
    for _ in range(300):
        logs = stats.t.rvs(5, size=(len(keys), 2), random_state=random)
        interval = deviation_ratio(keys.assign(before=logs[:, 0], after=logs[:, 1]))
        held += interval.low < 1 < interval.high
    assert 0.84 < held / 300 < 0.96


def test_so_many_blocks_as_are_needed_find_equal_versions_equivalent() -> None:
    deviation, settings = 0.06, 4
    blocks = int(blocks_needed(2 * deviation**2, settings))
    random = np.random.default_rng(5)
    ratios = deviation * np.sqrt(2) * random.standard_normal((4000, blocks * settings))
    error = stats.sem(ratios, axis=1) * stats.t.ppf(0.95, blocks * settings - 1)
    equivalent = np.abs(ratios.mean(axis=1)) + error < np.log(1.02)
    assert 0.87 < equivalent.mean() < 0.95
    assert np.isnan(blocks_needed(np.nan, 4))
    assert blocks_needed(0.0, 4) == 2


def test_the_steadiest_sites_come_first_and_need_fewest_blocks() -> None:
    runs = made_up(deviation=0.02)
    restless = runs["site"] == "s"
    runs.loc[restless, "vc85"] *= np.exp(0.2 * np.random.default_rng(2).standard_normal(restless.sum()))
    table = choice_of_sites(runs[runs["version"] == BEFORE])
    assert list(table["site"]) == ["t", "s"]
    assert table["dsl VC85"][1] == pytest.approx(20, rel=0.4)
    assert table["largest"][0] == pytest.approx(2.2, rel=0.3)
    alone, both = table["blocks alone"], table["blocks with those above"]
    assert alone[0] == both[0] < both[1] < alone[1]


def test_attempts_that_do_not_count_are_counted_by_their_gates() -> None:
    runs = made_up(blocks=2)
    first = runs.iloc[:1].assign(valid=False, reason="late_wakeups: 3 packets")
    lost = runs.index[-1]
    runs.loc[lost, ["valid", "reason"]] = [False, "error_page: it was shown"]
    table = exclusions(pd.concat([first, runs], ignore_index=True))
    assert table.loc[BEFORE].to_dict() == {
        "attempts": 17,
        "do not count": 1,
        "runs without one that counts": 0,
        "gates": "late_wakeups 1",
    }
    assert table.loc[AFTER, "runs without one that counts"] == 1


def test_each_version_is_first_as_often_and_the_seed_says_when() -> None:
    order = turns(PLAN)
    assert Counter(turn.version for turn in order[::2]) == {BEFORE: 5, AFTER: 5}
    assert [turn.pair for turn in order] == [pair for pair in range(1, 11) for _ in "ab"]
    assert turns(PLAN) == order != turns(replace(PLAN, seed=8))
    assert turns(replace(PLAN, blocks=12))[:20] == order


def test_a_comparison_goes_on_only_as_it_was_begun(tmp_path: Path) -> None:
    keep_plan(PLAN, tmp_path / "new")
    keep_plan(replace(PLAN, blocks=12), tmp_path / "new")
    with pytest.raises(EyelevelError, match="begun with 12 blocks"):
        keep_plan(PLAN, tmp_path / "new")
    with pytest.raises(EyelevelError, match="other after: bbb"):
        keep_plan(replace(PLAN, after="c" * 40, blocks=12), tmp_path / "new")
    (tmp_path / "something").touch()
    with pytest.raises(EyelevelError, match="no comparison of versions"):
        keep_plan(PLAN, tmp_path)


def repository(folder: Path) -> Path:
    """A repository with one commit."""
    (folder / "module.py").write_text("VERSION = 1\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    git(folder, "add", ".")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "-qm", "first")
    return folder


def test_a_checkout_is_gone_whatever_happens_and_one_left_by_a_killed_process_is_replaced(tmp_path: Path) -> None:
    (source := tmp_path / "source").mkdir()
    where, commit = resolve(str(repository(source)))
    place = tmp_path / "checkouts" / "before"
    git(where, "worktree", "add", "--detach", str(place), commit)  # as left by a killed process
    (place / "module.py").write_text("VERSION = 2\n")
    with pytest.raises(RuntimeError), checkout(where, commit, place):
        assert (place / "module.py").read_text() == "VERSION = 1\n"
        assert list(place.glob("__pycache__/*.pyc"))
        raise RuntimeError
    assert not place.exists()
    assert len(git(where, "worktree", "list").splitlines()) == 1


def test_a_version_is_a_commit_or_a_checkout_without_changes(tmp_path: Path) -> None:
    source = repository(tmp_path)
    assert resolve(str(source)) == (source.resolve(), git(source, "rev-parse", "HEAD"))
    assert resolve("HEAD") == (PROJECT, git(PROJECT, "rev-parse", "HEAD"))
    (source / "module.py").write_text("VERSION = 2\n")
    with pytest.raises(EyelevelError, match="not committed"):
        resolve(str(source))
    with pytest.raises(EyelevelError, match="no-such-version"):
        resolve("no-such-version")
