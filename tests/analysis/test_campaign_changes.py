"""Comparison of two campaigns: a known change is shown, and a change of the machine is not mistaken for it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from support.analysis_truth import consistent, same_campaigns
from support.axe import accessible
from support.browser import Browser
from support.worlds import World, campaign

from analysis import hypotheses, simulate
from analysis.campaign_changes import CampaignChange, compare
from analysis.report.changes import INDEX, write
from analysis.runs import CampaignTable
from base.errors import EyelevelError
from eyelevel.commands.compare import main
from studies import STUDIES

WORLD = World(sites=5, runs=10, blocks=0.0)
SAME_CAMPAIGNS = 25


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
    assert consistent(alarms, SAME_CAMPAIGNS, 0, slack=changes[0].false_alarm_share), alarms


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
    assert result.exit_code == 2, result.output
    answer = json.loads((b / "compare" / "a" / "compare.json").read_text())
    assert answer["outcome"] == "worse"
    assert {"what": "versions chromium", "a": "-", "b": "new"} in answer["differences"]
    assert "nothing is paired" in (b / "compare" / "a" / "index.html").read_text()
    assert CliRunner().invoke(main, ["--a", str(b), "--b", str(a)]).exit_code == 0
    refusal = CliRunner().invoke(main, ["--a", str(a), "--b", str(b), "--worse-than", "5"])
    assert isinstance(refusal.exception, EyelevelError)
