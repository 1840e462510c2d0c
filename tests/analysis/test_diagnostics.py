"""The diagnostics find what was put into a simulated campaign, and nothing else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.analysis_truth import campaign_table, simulated_table

from analysis import diagnostics, hypotheses
from analysis.aggregate import mixed_models
from analysis.hypotheses import Pair
from analysis.outcomes import WARNING_P
from analysis.runs import CampaignTable, load
from analysis.samples import samples_of
from analysis.simulate import Truth, write
from base.errors import EyelevelError
from measure.metrics import metric_names
from measure.table import CampaignDocument

QUIET = Truth(sites=4, networks=("dsl",), protocols=("tcp", "quic"), runs=20, effects={"quic": -0.1})


def table(**changes: object) -> CampaignTable:
    return simulated_table(Truth(**{**QUIET.__dict__, **changes}))


def test_a_quiet_campaign_has_no_warning() -> None:
    campaign = table(canary=True)
    residuals = diagnostics.residuals(campaign.runs)
    assert not diagnostics.drift(residuals)["warning"].any()
    assert not diagnostics.canaries(residuals)["warning"].any()
    assert not diagnostics.exclusion_rates(campaign.runs)["warning"].any()
    calibration = diagnostics.aa_calibration(diagnostics.aa_p_values(samples_of(campaign), []), 0.95)
    assert not calibration["warning"].any()


def test_drift_is_found_and_measured() -> None:
    residuals = diagnostics.residuals(table(drift=0.3, canary=True).runs)
    results = diagnostics.drift(residuals).set_index("metric")
    assert results.loc["si", "warning"] == "drifts"
    assert results.loc["si", "drift"] == pytest.approx(0.3, abs=0.05)
    assert (diagnostics.canaries(residuals)["warning"] == "goes with the canary").all()


def test_runs_stand_in_the_order_measured_whatever_that_of_the_rows() -> None:
    runs = table().runs
    residuals = diagnostics.residuals(runs.sample(frac=1, random_state=1))
    assert residuals["order"].tolist() == list(range(len(runs)))
    assert residuals["started_at"].is_monotonic_increasing
    assert set(residuals["position"]) == {1, 2}
    assert residuals.groupby("protocol")["off_si"].median().abs().max() == pytest.approx(0, abs=0.01)


def test_a_place_in_the_block_that_matters_is_found() -> None:
    runs = table().runs
    residuals = diagnostics.residuals(runs)
    second = residuals["position"] == 2
    residuals.loc[second, "off_plt"] += 0.1
    results = diagnostics.drift(residuals).set_index("metric")["warning"]
    assert results["plt"] == "depends on the place in the block"
    assert results["si"] == ""


def test_a_machine_that_is_slower_is_found_and_blocks_do_not_mind() -> None:
    campaign = table(machines=2)
    slow = campaign.runs["machine"] == 2
    campaign.runs.loc[slow, "si"] *= 1.2
    residuals = diagnostics.residuals(campaign.runs)
    results = diagnostics.drift(residuals, campaign.machine_column).set_index("metric")
    assert "depends on the machine" in results.loc["si", "warning"]
    assert results.loc["plt", "machine_p"] > WARNING_P
    assert mixed_gain(campaign, "si") == pytest.approx(mixed_gain(campaign, "plt"), abs=0.01)


def mixed_gain(campaign: CampaignTable, metric: str) -> float:
    declared_pairs = hypotheses.load().restricted_to(campaign.protocols, campaign.metrics)
    models = mixed_models(samples_of(campaign), declared_pairs).set_index("metric")
    return float(models.loc[metric, "mixed_gain"])


def test_uneven_exclusions_are_told_of_the_protocol_that_has_them() -> None:
    campaign = table(excluded={"quic": 0.4})
    results = diagnostics.exclusion_rates(campaign.runs).set_index("protocol")
    assert results.loc["quic", "warning"] == "more than the others"
    assert results.loc["tcp", "warning"] == ""
    assert results.loc["quic", "excluded"] == (~campaign.runs["valid"]).sum()
    assert results.loc["quic", "p"] < 1e-3


def test_even_exclusions_are_no_warning() -> None:
    campaign = table(excluded={"quic": 0.1, "tcp": 0.1})
    assert not diagnostics.exclusion_rates(campaign.runs)["warning"].any()


def test_an_attempt_that_another_was_preferred_to_is_no_exclusion() -> None:
    runs = table(excluded={"quic": 0.4}).runs
    runs.loc[~runs["valid"], "reason"] = "superseded: another attempt counts"
    assert diagnostics.exclusion_rates(runs)["excluded"].sum() == 0


def test_the_shuffled_p_value_is_fishers() -> None:
    campaign = table(excluded={"quic": 0.05})
    counts = diagnostics.exclusion_rates(campaign.runs)
    expected = stats.fisher_exact(np.stack([counts["excluded"], counts["attempts"] - counts["excluded"]])).pvalue
    assert counts["p"].iloc[0] == pytest.approx(expected, abs=0.02)


def test_one_protocol_under_two_names_is_an_aa_pair() -> None:
    alike = {"transport": "tcp", "pacing": True}
    protocols = {"a": {"name": "a", **alike}, "b": {"name": "b", **alike}, "c": {"name": "c", "transport": "quic"}}
    assert diagnostics.aa_pairs(CampaignDocument({"protocols": protocols}), protocols) == [Pair("a", "b")]
    assert diagnostics.aa_pairs(CampaignDocument({"protocols": protocols}), ["a", "c"]) == []


def test_an_aa_pair_that_is_none_is_seen() -> None:
    samples = samples_of(table(sites=30))
    results = diagnostics.aa_calibration(diagnostics.aa_p_values(samples, [Pair("tcp", "quic")]), 0.95)
    by_kind = results[results["level"] == 0.01].set_index(["kind", "metric"])
    assert by_kind.loc[("A/A", "si"), "warning"] == "finds too much"
    assert by_kind.loc[("A/A", "si"), "tests"] == 30
    assert by_kind.loc[("split", "si"), "warning"] == ""


def test_a_simulated_campaign_is_read_as_a_measured_one(tmp_path: Path) -> None:
    campaign = load(write(tmp_path / "simulated", Truth(sites=2, runs=3, machines=2)))
    assert len(campaign.runs) == 2 * 4 * 5 * 3
    assert campaign.machine_column == "machine"
    assert samples_of(campaign).values.shape == (4, 2, 5, len(metric_names()), 3)


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
