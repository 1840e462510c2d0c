"""Finding protocols that were not measured side by side."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.analysis_truth import consistent
from support.worlds import World, attempt, campaign, table_of

from analysis import balance
from analysis.report.warnings import of_balance
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Pair

PAIRS = [Pair("tcp", "tcp+"), Pair("tcp+", "quic")]


def texts(table: CampaignTable) -> list[str]:
    return of_balance(balance.pair_balance(table, PAIRS), balance.place_test(table))


def test_a_campaign_as_planned_has_no_warning() -> None:
    table = campaign(World(sites=4, runs=5), 1)
    pairs = balance.pair_balance(table, PAIRS)
    assert texts(table) == []
    assert (pairs[["together", "complete", "within_hour"]] == 1).all().all()
    assert (pairs["gap_minutes"] < 1).all()
    assert (pairs["blocks"] == 20).all()
    assert (pairs["sites"] == 4).all()


@pytest.mark.parametrize("has_blocks", [True, False])
def test_a_protocol_that_came_a_week_later(has_blocks: bool) -> None:
    table = campaign(World(sites=4, runs=5, late="quic"), 1)
    table = table if has_blocks else CampaignTable(table.runs.drop(columns="block"), table.document)
    pairs = balance.pair_balance(table, PAIRS).set_index("compared")
    assert (pairs.loc["quic", "within_hour"] == 0).all()
    assert pairs.loc["quic", "gap_minutes"].to_numpy() == pytest.approx(7 * 1440, abs=60)
    assert (pairs.loc["quic", "complete"] == 0).all()
    assert (pairs.loc["tcp+", "warning"] == "").all()
    (text,) = texts(table)
    beginning = "Protocols were compared at different times on DSL and LTE. QUIC against TCP+: no block has"
    assert text.startswith(beginning)
    assert "no partner within an hour, and it is typically 7 days away" in text


def test_a_fixed_order_is_found() -> None:
    table = campaign(World(sites=4, runs=5, fixed=True), 1)
    test = balance.place_test(table)
    assert test.effect == pytest.approx(1)
    # All 40 blocks have their three protocols in the same order, so Anderson's chi-squared is 40 x (3 - 1)^2.
    assert test.chi_squared == pytest.approx(160)
    assert test.freedom == 4
    assert balance.places(table).iloc[0].tolist() == ["dsl", "tcp", 20, 0, 0]
    assert len(texts(table)) == 1


def test_two_protocols_are_a_test_of_signs() -> None:
    rows = [
        attempt(protocol=name, run=run, block=run, at=10 * run + (place if run <= 14 else -place))
        for run in range(1, 21)
        for place, name in enumerate(("tcp", "quic"))
    ]
    test = balance.place_test(table_of(pd.DataFrame(rows), 20))
    assert test.chi_squared == pytest.approx((14 - 6) ** 2 / 20)
    assert test.freedom == 1
    assert test.effect == pytest.approx((14 - 6) / 20)


@pytest.mark.slow
def test_random_orders_have_the_p_values_that_they_should() -> None:
    p = [balance.place_test(campaign(World(sites=4, runs=6, lost={"quic": 0.2}), seed)).p for seed in range(60)]
    assert stats.kstest(p, "uniform").pvalue > 1e-4
    assert consistent(int((np.array(p) < 0.1).sum()), 60, 0.1, slack=0.02)


def test_blocks_of_other_protocols_are_put_together() -> None:
    table = campaign(World(sites=6, runs=6), 3)
    # Half of the blocks lack one protocol.
    runs = table.runs[~((table.runs["block"] % 2 == 0) & (table.runs["protocol"] == "quic"))]
    assert balance.place_test(CampaignTable(runs, table.document)).freedom == 4
    alone = table.runs[table.runs["protocol"] == "quic"]
    test = balance.place_test(CampaignTable(alone, table.document))
    assert np.isnan(test.p) and not test.is_ordered


def test_incomplete_blocks_are_counted() -> None:
    table = campaign(World(sites=4, runs=10, lost={"quic": 0.3}), 1)
    row = balance.pair_balance(table, [Pair("tcp", "quic")]).iloc[0]
    cell = table.valid[table.valid["network"] == "dsl"]
    assert row["complete"] == pytest.approx((cell["protocol"] == "quic").sum() / 40)
    # Protocols in incomplete blocks were still measured together.
    assert (row["together"], row["within_hour"], row["warning"]) == (1, 1, "incomplete blocks")


def test_sites_of_one_protocol_are_named() -> None:
    table = campaign(World(sites=4, runs=3), 1)
    runs = table.runs[~((table.runs["site"] == "s02") & (table.runs["protocol"] == "quic"))]
    table = CampaignTable(runs, table.document)
    pairs = balance.pair_balance(table, PAIRS)
    assert pairs.loc[pairs["compared"] == "quic", "single_sites"].tolist() == ["s02", "s02"]
    assert any("only one of both has valid runs of s02" in text for text in texts(table))


def test_without_starts_it_says_that_it_cannot_tell() -> None:
    table = campaign(World(sites=4, runs=3), 1)
    table = CampaignTable(table.runs.drop(columns="started_at"), table.document)
    (text,) = texts(table)
    assert text.startswith(
        "It is unknown whether protocols were measured together on DSL and LTE. TCP+ against TCP and"
    )
    assert balance.places(table).empty


def test_the_nearest_partner_counts_where_a_block_has_none() -> None:
    rows = [attempt(protocol="tcp", run=1, block=1, at=0), attempt(protocol="quic", run=1, block=2, at=1800)]
    rows += [attempt(protocol="tcp", run=2, block=3, at=86400)]
    row = balance.pair_balance(table_of(pd.DataFrame(rows), 2), [Pair("tcp", "quic")]).iloc[0]
    assert (row["gap_minutes"], row["within_hour"], row["together"]) == (30, pytest.approx(2 / 3), 0)


def test_a_partner_counts_as_far_whichever_of_both_is_first() -> None:
    rows = [attempt(protocol=name, run=1, block=1, at=at) for name, at in (("tcp", 7200), ("quic", 0))]
    row = balance.pair_balance(table_of(pd.DataFrame(rows), 1), [Pair("tcp", "quic")]).iloc[0]
    assert (row["gap_minutes"], row["within_hour"], row["together"]) == (120, 0, 1)
