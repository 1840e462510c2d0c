"""Samples: which runs were measured side by side, and how far a campaign has progressed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.worlds import World, attempt, campaign, table_of

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.report.sentences import headlines, warnings
from analysis.runs import CampaignTable
from analysis.samples import blocks_of, missing_times, samples_of
from analysis.statistics.outcomes import NOT_DECIDED
from dataset.table import GivenUp, write_given_up


def without(table: CampaignTable, site: str, after_run: int) -> CampaignTable:
    runs = table.runs
    return replace(table, runs=runs[(runs["site"] != site) | (runs["run"] <= after_run)])


def test_a_round_is_over_at_all_sites_together() -> None:
    table = campaign(World(sites=3, runs=6), 1)
    assert samples_of(table).rounds == (6, 6)
    late = without(table, "s01", 4)
    assert samples_of(late).rounds == (4, 4)


def test_a_site_that_was_given_up_holds_up_nothing(tmp_path: Path) -> None:
    late = replace(without(campaign(World(sites=3, runs=6), 1), "s01", 2), folder=tmp_path)
    write_given_up(tmp_path, [GivenUp("s01", "lte", "load_failed: no", 12, "then")])
    assert samples_of(late).rounds == (2, 6)
    write_given_up(tmp_path, [GivenUp(site, "lte", "load_failed: no", 12, "then") for site in ("s00", "s01", "s02")])
    assert samples_of(late).rounds == (2, 2)


def test_blocks_of_an_added_protocol_alone_are_no_rounds_and_stand_behind_all_others() -> None:
    """After ten runs of TCP and QUIC, QUIC+BBR was added in separate blocks, and then ten more runs of all were
    made."""
    rows = [
        attempt(protocol=name, run=run, block=block, at=block)
        for first, numbers, names in (
            (0, range(1, 11), ("tcp", "quic")),
            (0, range(1, 11), ("quic+bbr",)),
            (10, range(11, 21), ("tcp", "quic", "quic+bbr")),
        )
        for run in numbers
        for name in names
        for block in [run + first + 10 * (names == ("quic+bbr",))]
    ]
    table = table_of(pd.DataFrame(rows), 20)
    hypotheses = {"declared_at": "then", "protocols": {"quic+bbr": "later"}, "runs": [10, 20]}
    table = replace(table, document=replace(table.document, hypotheses=hypotheses))
    samples = samples_of(table)
    assert samples.rounds == (20,)
    assert np.isfinite(samples.of("tcp")[0, 0, 0, :20]).all()
    assert np.isfinite(samples.of("quic+bbr")[0, 0, 0, 20:]).all()
    assert samples.values.shape[-1] == 30


def test_a_block_whose_runs_were_all_lost_is_measured() -> None:
    rows = [attempt(protocol=name, run=run, block=run) for name in ("tcp", "quic") for run in (1, 2)]
    rows += [attempt(protocol=name, run=3, block=3, reason="load_failed: no") for name in ("tcp", "quic")]
    samples = samples_of(table_of(pd.DataFrame(rows), 3))
    assert (samples.rounds, samples.values.shape[-1]) == ((3,), 2)


def partners(table: CampaignTable) -> int:
    """The number of blocks in which both TCP and QUIC have a run."""
    samples = samples_of(table)
    return int(np.isfinite(samples.of("tcp")[..., 0, :] + samples.of("quic")[..., 0, :]).sum())


@pytest.mark.parametrize("has_blocks", [True, False])
def test_runs_of_different_weeks_are_no_partners(has_blocks: bool) -> None:
    together, late = (campaign(World(sites=2, runs=5, late=name), 1) for name in ("", "quic"))
    for table, expected in ((together, 2 * 2 * 5), (late, 0)):
        runs = table.runs if has_blocks else table.runs.drop(columns="block")
        assert partners(replace(table, runs=runs)) == expected


def test_a_run_whose_block_is_unknown_takes_no_other_with_it() -> None:
    late = campaign(World(sites=2, runs=5, late="quic"), 1)
    late.runs.loc[late.runs["protocol"].eq("tcp").idxmax(), "block"] = 0
    assert partners(late) == 0
    together = campaign(World(sites=2, runs=5), 1)
    together.runs.loc[together.runs["protocol"].eq("tcp").idxmax(), "block"] = 0
    assert partners(together) == 2 * 2 * 5 - 1


def test_without_blocks_and_starts_runs_of_one_number_are_partners() -> None:
    table = campaign(World(sites=2, runs=5), 1)
    runs = table.runs.drop(columns=["block", "started_at"])
    assert partners(replace(table, runs=runs)) == 2 * 2 * 5
    assert blocks_of(runs).nunique() == 5


def without_picture(table: CampaignTable, share: float, value: float = 0.0) -> CampaignTable:
    """`table`, in which this share of QUIC's loads has the Speed Index `value`."""
    runs = table.runs
    is_one = (runs["protocol"] == "quic") & (np.random.default_rng(3).random(len(runs)) < share)
    return replace(table, runs=runs.assign(si=runs["si"].mask(is_one, value)))


@pytest.mark.parametrize("value", [0.0, -5.0, np.nan])
def test_a_metric_that_a_quarter_of_the_loads_lacks_has_no_verdict(value: float) -> None:
    table = campaign(World(sites=8, runs=15), 1)
    lacking = without_picture(table, 0.25, value)
    missing = missing_times(lacking)
    assert missing[["protocol", "network", "metric", "loads"]].to_numpy().tolist() == [
        ["quic", name, "si", 120] for name in ("dsl", "lte")
    ]
    assert missing["missing"].between(20, 40).all()
    findings, before = (findings_of(one, hypotheses.load()) for one in (lacking, table))
    verdicts = findings["confirmatory"].set_index("metric")
    assert set(verdicts.loc["si", "verdict"]) == {NOT_DECIDED}
    assert (verdicts.loc["si", "blocks"] == 0).all() and verdicts.loc["si", "gain"].isna().all()
    expected = before["confirmatory"].set_index("metric").loc["plt"]
    assert verdicts.loc["plt", "gain"].to_numpy() == pytest.approx(expected["gain"].to_numpy())
    texts = warnings(findings)
    (text,) = [text for text in texts if "0 or missing" in text]
    for row in missing.itertuples():
        share, place = f"{100 * row.missing / row.loads:.1f} %", row.network.upper()
        assert f"{share} of QUIC's on {place} ({row.missing} of 120)" in text
    assert text.startswith("SI is 0 or missing in loads that count. ") and text.endswith(
        "there is no verdict on SI there."
    )
    assert not any("Valid runs lack" in text for text in texts)
    assert any("no block has a usable SI of both" in text for text in headlines(findings))


@pytest.mark.parametrize(("runs", "is_named", "is_left_out"), [(10, False, False), (8, True, False), (1, True, True)])
def test_a_single_time_that_is_0_is_named_if_it_is_one_of_few(runs: int, is_named: bool, is_left_out: bool) -> None:
    """It is one of 12 x `runs` over QUIC on its network: from 1 % on it is named, from 5 % on no other counts."""
    table = campaign(World(sites=12, runs=runs), 1)
    first = table.runs.index[table.runs["protocol"] == "quic"][0]
    one = replace(table, runs=table.runs.assign(si=table.runs["si"].mask(table.runs.index == first, 0.0)))
    missing = missing_times(one)
    assert missing["missing"].tolist() == [1] * is_named
    place = table.runs["network"][first], "si"
    samples = samples_of(one)
    times = samples.of("quic")[samples.networks.index(place[0]), :, samples.metrics.index(place[1])]
    assert (times > 0).sum() == (0 if is_left_out else 12 * runs - 1)
    texts = [text for text in warnings(findings_of(one, hypotheses.load())) if "0 or missing" in text]
    assert len(texts) == is_named
    assert not texts or texts[0].endswith(
        "there is no verdict on SI there." if is_left_out else "Verdicts on SI there rest on the other loads alone."
    )


def test_a_site_without_a_metric_and_metrics_that_may_be_0_are_no_fault() -> None:
    table = campaign(World(sites=4, runs=3), 1)
    runs = table.runs.assign(si=table.runs["si"].mask(table.runs["site"] == "s00"), cls=0.0)
    other = replace(table, runs=runs)
    assert missing_times(other).empty
    assert (samples_of(other, ["cls"]).values == 0).all()
