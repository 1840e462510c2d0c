"""Diagnostics of the runs as a sceptic would make them; losses, balance and stability have separate tests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.analysis_truth import campaign_table, simulated_table

from analysis import diagnostics, hypotheses, stability
from analysis.report.conclusion import findings_of
from analysis.runs import CampaignTable, load
from analysis.samples import samples_of
from analysis.statistics.hypotheses import Pair
from base.errors import EyelevelError
from dataset.metrics import time_names
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from eyelevel.simulate import Truth, write

QUIET = Truth(sites=4, networks=("dsl",), protocols=("tcp", "quic"), runs=20, effects={"quic": -0.1})


def table(**changes: object) -> CampaignTable:
    return simulated_table(Truth(**{**QUIET.__dict__, **changes}))


def test_runs_stand_in_the_order_measured_whatever_that_of_the_rows() -> None:
    campaign = table()
    residuals = stability.residuals(replace(campaign, runs=campaign.runs.sample(frac=1, random_state=1)))
    assert len(residuals) == len(campaign.runs)
    assert residuals["started"].is_monotonic_increasing and residuals["hours"].iloc[0] == 0
    assert set(residuals["place"]) == {1, 2}
    assert residuals.groupby("protocol")["off_si"].median().abs().max() == pytest.approx(0, abs=0.01)


def test_runs_whose_start_is_unknown_have_no_order() -> None:
    campaign = table()
    starts = campaign.runs["started_at"].where(campaign.runs["protocol"] == "tcp", "")
    known = stability.residuals(replace(campaign, runs=campaign.runs.assign(started_at=starts)))
    assert set(known["protocol"]) == {"tcp"} and set(known["place"]) == {1}
    unknown = stability.residuals(replace(campaign, runs=campaign.runs.drop(columns="started_at")))
    assert unknown.empty and {"hours", "place", "off_si"} <= {*unknown}


def test_a_machine_that_is_slower_is_found_and_blocks_do_not_mind() -> None:
    campaign = table()
    campaign.runs["machine"] = 1 + campaign.runs["run"] % 2
    campaign.runs.loc[campaign.runs["machine"] == 2, "si"] *= 1.2
    steps = stability.steps(campaign, stability.block_means(campaign))
    machines = steps[steps["factor"] == "machine"].set_index("metric")["warning"]
    assert machines["si"] == "depends on the machine"
    assert machines["plt"] == ""
    assert gain_of(campaign, "si") == pytest.approx(gain_of(campaign, "plt"), abs=0.01)


def gain_of(campaign: CampaignTable, metric: str) -> float:
    table = findings_of(campaign, hypotheses.load())["over_sites"].set_index("metric")
    return float(table.loc[metric, "ratio_gain"])


def test_one_protocol_under_two_names_is_an_aa_pair() -> None:
    alike = {"transport": "tcp", "pacing": True}
    protocols: dict[str, dict[str, Any]] = {name: {"name": name, **alike} for name in ("a", "b")}
    protocols["c"] = {"name": "c", "transport": "quic"}
    assert diagnostics.aa_pairs(CampaignDocument(CampaignSettings(protocols=protocols)), protocols) == [Pair("a", "b")]
    assert diagnostics.aa_pairs(CampaignDocument(CampaignSettings(protocols=protocols)), ["a", "c"]) == []


def test_an_aa_pair_that_is_none_is_seen() -> None:
    samples = samples_of(table(sites=30))
    results = diagnostics.aa_calibration(diagnostics.aa_p_values(samples, [Pair("tcp", "quic")]), 0.95)
    by_metric = results[results["level"] == 0.01].set_index("metric")
    assert by_metric.loc["si", "warning"] == "finds too much"
    assert by_metric.loc["si", "tests"] == 30


def test_a_simulated_campaign_is_read_as_a_measured_one(tmp_path: Path) -> None:
    campaign = load(write(tmp_path / "simulated", Truth(sites=2, runs=3)))
    assert len(campaign.runs) == 2 * 4 * 5 * 3
    assert samples_of(campaign).values.shape == (4, 2, 5, len(time_names()), 3)


def test_a_line_that_is_being_written_is_not_a_run_yet(tmp_path: Path) -> None:
    folder = write(tmp_path / "simulated", Truth(sites=1, runs=2))
    whole = load(folder).runs
    with (folder / "runs.csv").open("a") as file:
        file.write("site-01,dsl,tcp,3,1,true,,9")
    assert len(load(folder).runs) == len(whole)


def test_a_run_that_counts_twice_is_refused() -> None:
    campaign = table()
    runs = pd.concat([campaign.runs, campaign.runs.iloc[:1]])
    with pytest.raises(EyelevelError, match="as valid more than once"):
        samples_of(campaign_table(runs, campaign.networks, campaign.protocols))


def test_goodput_and_use_of_links_are_means_over_sites_of_what_has_them() -> None:
    rows = [("lte", "quic", "a", 1.0), ("lte", "quic", "a", 3.0), ("lte", "quic", "b", 6.0), ("lte", "tcp", "a", None)]
    runs = pd.DataFrame(rows, columns=["network", "protocol", "site", "goodput_mbps"]).assign(
        valid=True, down_utilisation=0.5, up_utilisation=None
    )
    table = diagnostics.link_use(runs.astype({"up_utilisation": float}))
    assert table.iloc[0].tolist()[:5] == ["lte", "quic", 2, 3, 4.0]
    assert table["up_utilisation"].isna().all()
    assert diagnostics.link_use(runs.assign(valid=False)).empty
    assert diagnostics.link_use(runs.drop(columns=["goodput_mbps", "down_utilisation", "up_utilisation"])).empty
