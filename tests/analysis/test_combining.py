"""Several campaigns combined: known truths, the error between campaigns, and the command."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import optimize, stats
from support.axe import accessible
from support.browser import Browser

from analysis.combining import combined
from analysis.statistics.ratios import MeanRatio
from base.errors import EyelevelError
from eyelevel import simulate
from eyelevel.commands.combine import main

MARGIN = 0.03


def campaigns(*gains: float, error: float | tuple[float, ...] = 0.005, freedom: float = 40.0) -> MeanRatio:
    """Campaigns with these mean log ratios."""
    each = np.ones(len(gains))
    return MeanRatio(np.array(gains), np.array(error) * each, freedom * each, np.full(len(gains), 50))


def test_numbers_are_those_computed_by_hand() -> None:
    gains, errors = np.array([-0.02, -0.10, -0.05, -0.07]), np.array([0.01, 0.02, 0.005, 0.015])
    effects = combined(campaigns(*gains, error=tuple(errors)), MARGIN)

    def weighted(tau: float) -> tuple[float, float, float]:
        weights = 1 / (errors**2 + tau**2)
        mean = (weights * gains).sum() / weights.sum()
        return mean, float((weights * (gains - mean) ** 2).sum()), weights.sum()

    tau = optimize.brentq(lambda value: weighted(value)[1] - 3, 0, 1, xtol=1e-12)
    mean, _, weight = weighted(tau)
    _, q, fixed = weighted(0)
    assert effects.tau == pytest.approx(tau, rel=1e-4)
    assert effects.mean.centre == pytest.approx(mean, rel=1e-5)
    assert effects.mean.error == pytest.approx(weight**-0.5, rel=1e-4)
    assert effects.mean.interval(0.95)[0] == pytest.approx(mean - stats.t.ppf(0.975, 3) * weight**-0.5, rel=1e-4)
    assert (effects.q, effects.i_squared) == pytest.approx((q, 1 - 3 / q))
    shares = 1 - errors**-2 / fixed
    spread = (shares**2 / 40).sum()
    assert effects.q_p == pytest.approx(stats.f.sf(q / 3 / (1 + 4 / 15 * spread), 3, 5 / spread))


def test_two_campaigns_are_told_apart_by_welch_s_test() -> None:
    draw = np.random.default_rng(1)
    first, second = draw.normal(0, 1, 8), draw.normal(1, 3, 12)
    both = [(sample.mean(), stats.sem(sample), len(sample) - 1) for sample in (first, second)]
    centres, errors, freedoms = (np.array(values, dtype=float) for values in zip(*both, strict=True))
    effects = combined(MeanRatio(centres, errors, freedoms, np.array([8, 12])), MARGIN)
    assert effects.q_p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)


def test_campaigns_that_are_close_by_chance_have_the_error_of_their_own() -> None:
    effects = combined(campaigns(-0.05, -0.05, -0.05, error=0.02), MARGIN)
    assert effects.tau == 0 == effects.i_squared
    assert effects.mean.error == pytest.approx(0.02 / 3**0.5)


def test_campaigns_without_scatter_have_finite_numbers() -> None:
    effects = combined(campaigns(0.0, 0.01, error=0.0, freedom=np.inf), MARGIN)
    assert np.isfinite([float(effects.mean.error), effects.tau, effects.q_p, effects.same_p]).all()


def test_combined_intervals_hold() -> None:
    """Three campaigns whose true gains have a standard deviation of 3 %."""
    draw, truth, repetitions, freedom = np.random.default_rng(7), -0.08, 1000, 20
    held = 0
    for _ in range(repetitions):
        errors = 0.005 * np.sqrt(draw.chisquare(freedom, 3) / freedom)
        gains = draw.normal(truth, np.hypot(0.03, 0.005), 3)
        low, high = combined(campaigns(*gains, error=tuple(errors), freedom=freedom), MARGIN).mean.interval(0.95)
        held += bool(low < truth < high)
    assert 0.93 < held / repetitions < 0.97


def test_equal_campaigns_seldom_differ_and_different_ones_seldom_agree() -> None:
    draw, repetitions, freedom = np.random.default_rng(8), 500, 8
    differ, agree = 0, 0
    for _ in range(repetitions):
        errors = 0.005 * np.sqrt(draw.chisquare(freedom, 3) / freedom)
        noise = draw.normal(0, 0.005, 3)
        differ += combined(campaigns(*noise, error=tuple(errors), freedom=freedom), MARGIN).q_p < 0.05
        shifted = noise + np.array([0, 0, MARGIN])
        agree += combined(campaigns(*shifted, error=tuple(errors), freedom=freedom), MARGIN).same_p < 0.05
    assert 0.025 < differ / repetitions < 0.075
    assert agree / repetitions < 0.075


def simulated(folder: Path, seed: int, quic: float, **truth: object) -> Path:
    known = {"sites": 6, "networks": ("lte",), "protocols": ("tcp+", "quic"), "runs": 12, "noise_sd": 0.01}
    truth = known | {"effects": {"quic": quic}, "seed": seed} | truth
    return simulate.write(folder, simulate.Truth(**truth))  # type: ignore[arg-type]


def combine(*folders: Path) -> dict[str, object]:
    result = CliRunner().invoke(main, [*map(str, folders)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return {"output": result.output, **json.loads((folders[0] / "combined" / "combine.json").read_text())}


def test_command_says_what_campaigns_agree_on_and_which_do_not_agree(tmp_path: Path) -> None:
    same = [simulated(tmp_path / f"m{seed}", seed, -0.10) for seed in (1, 2, 3)]
    answer = combine(*same)
    rows = answer["contrasts"]
    assert isinstance(rows, list)
    assert [row["metric"] for row in rows] == ["si", "plt", "fcp", "lcp"]
    assert {(row["verdict"], row["agreement"], row["campaigns"]) for row in rows} == {("faster", "agree", 3)}
    assert all(row["gain_low"] < -0.10 < row["gain_high"] for row in rows)
    output = str(answer["output"])
    assert "The campaigns agree on 4 contrasts." in output
    page = (same[0] / "combined" / "index.html").read_text()
    assert "LTE, SI: QUIC is faster than TCP+ (" in page
    assert "; the 3 campaigns agree: any two differ by less than" in page
    assert "3 campaigns combined" in page and "data:image/svg+xml" in page
    assert (same[0] / "combined" / "tables" / "campaign_gains.csv").read_text().count("\n") == 13

    odd = simulated(tmp_path / "odd", 4, 0.10)
    answer = combine(*same[:2], odd)
    rows = answer["contrasts"]
    assert isinstance(rows, list)
    assert {(row["verdict"], row["agreement"]) for row in rows} == {("not decided", "do not agree")}
    assert "The campaigns do not agree on 4 contrasts." in str(answer["output"])

    assert "Two campaigns hardly show how campaigns differ" in str(combine(*same[:2])["output"])


def changed(folder: Path, kind: str, name: str, **keys: object) -> Path:
    """The campaign in `folder` with these settings of a network or protocol."""
    document = json.loads((folder / "campaign.json").read_text())
    document["settings"][kind][name] |= keys
    (folder / "campaign.json").write_text(json.dumps(document))
    return folder


def test_networks_with_other_settings_are_not_combined(tmp_path: Path) -> None:
    a, b = (simulated(tmp_path / name, seed, -0.1, networks=("dsl", "lte")) for seed, name in enumerate("ab"))
    changed(b, "networks", "lte", down_mbps=3.0)
    # A key that an older campaign does not have, and that is not in use, is no difference.
    changed(b, "networks", "dsl", key_of_tomorrow=0)
    changed(b, "protocols", "quic", initial_window=99)
    answer = combine(a, b)
    rows = answer["contrasts"]
    assert isinstance(rows, list)
    assert {row["network"] for row in rows} == {"dsl"}
    output = str(answer["output"]).replace("\n", " ")
    assert "Settings of the network lte differ between a and b (down_mbps): this network is left out." in output
    assert "Settings of the protocol quic differ between a and b (initial_window)." in output
    changed(b, "networks", "dsl", down_mbps=3.0)
    with pytest.raises(
        EyelevelError, match=r"no two have a contrast in common.*lte differ between a and b \(down_mbps"
    ):
        combine(a, b)


def test_campaigns_of_one_name_are_shown_by_their_paths(tmp_path: Path) -> None:
    folders = [simulated(tmp_path / machine / "try", seed, 0.0) for seed, machine in enumerate(("laptop", "server"))]
    names = [row["name"] for row in combine(*folders)["campaigns"]]  # type: ignore[attr-defined]
    assert names == [str(folder) for folder in folders]


def test_what_cannot_be_combined_is_refused_in_a_line(tmp_path: Path) -> None:
    a = simulated(tmp_path / "a", 1, 0.0)
    other = simulated(tmp_path / "other", 2, 0.0, protocols=("tcp", "tcp+bbr"))
    broken = simulated(tmp_path / "broken", 3, 0.0)
    (broken / "runs.csv").write_text("nothing\n")
    for words, message in (
        ([a], "a alone cannot be combined; name two campaigns or more"),
        ([a, a], "name a campaign more than once"),
        ([a, other], "a, other cannot be combined: no two have a contrast in common"),
        ([a, broken], "broken/runs.csv lacks the columns"),
        ([a, tmp_path / "none"], "there is no campaign"),
    ):
        result = CliRunner().invoke(main, [*map(str, words)])
        assert isinstance(result.exception, EyelevelError), result.output
        assert message in str(result.exception) and "\n" not in str(result.exception)
    assert not (a / "combined").exists()


def test_names_are_separated_by_commas_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate("ab"):
        simulated(tmp_path / name, seed, 0.0, sites=2, runs=4)
    result = CliRunner().invoke(main, ["a,b"], catch_exceptions=False)
    assert result.exit_code == 0 and "combining a, b" in result.output


def test_names_of_others_are_shown_as_they_are(tmp_path: Path) -> None:
    name = "[/b]$\\frac$"
    folders = [
        simulated(tmp_path / f"{seed} $\\frac$ <b>", seed, 0.0, sites=2, runs=4, protocols=("tcp", name))
        for seed in (1, 2)
    ]
    for folder in folders:
        # No attempt has a folder of such a name.
        pd.read_csv(folder / "runs.csv").drop(columns="folder").to_csv(folder / "runs.csv", index=False)
    output = str(combine(*folders)["output"])
    assert name.partition("$")[0] in output
    assert "<b>" not in (folders[0] / "combined" / "index.html").read_text().partition("<main")[0]


@pytest.mark.needs_axe
def test_everybody_can_read_the_page_of_combined_campaigns(browser: Browser, tmp_path: Path) -> None:
    folders = [simulated(tmp_path / name, seed, 0.1 * seed, sites=2, runs=5) for seed, name in enumerate("ab")]
    combine(*folders)
    assert accessible(browser, (folders[0] / "combined" / "index.html").as_uri()) == []
