"""Web metrics: the table has the true difference, its interval, and no row without a number."""

import numpy as np
import pandas as pd
import pytest
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.runs import CampaignTable
from analysis.web_metrics import COLUMNS, web_metrics

DECLARED = hypotheses.load()
SITES, RUNS = 4, 10


def with_numbers(runs: int = RUNS) -> CampaignTable:
    """A campaign in which long tasks block the page 30 ms less over QUIC, with half the layout shift and twice as many
    connections.

    Over either protocol there is no content. LCP is a time, so it is no number of this kind.
    """
    table = campaign(World(sites=SITES, runs=runs), seed=1)
    draw = np.random.default_rng(2)
    attempts = table.runs
    is_quic = attempts["protocol"].eq("quic")
    numbers = {
        "tbt": 200 - 30.0 * is_quic + draw.normal(0, 5, len(attempts)),
        "lcp": 900.0,
        "content_bytes": 0.0,
        "cls": np.where(is_quic, 0.1, 0.2),
        "connections": np.where(is_quic, 8, 4),
        "requests": 20,
    }
    return CampaignTable(attempts.assign(**numbers), table.document)


def of_quic(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of QUIC compared with TCP+, by network and metric."""
    rows = table[table["compared"].eq("quic") & table["reference"].eq("tcp+")]
    return rows.set_index(["network", "metric"])


def test_a_difference_is_in_the_numbers_unit_with_an_interval_around_it() -> None:
    rows = of_quic(web_metrics(with_numbers(), DECLARED)).xs("tbt", level="metric")
    assert set(rows.index) == {"dsl", "lte"}
    assert rows["difference"].to_numpy() == pytest.approx(-30, abs=4)
    assert ((rows["low"] < rows["difference"]) & (rows["difference"] < rows["high"])).all()
    assert ((rows["low"] < -30 + 4) & (rows["high"] > -30 - 4) & (rows["high"] - rows["low"] < 10)).all()
    means = rows["mean_compared"] - rows["mean_reference"]
    assert means.to_numpy() == pytest.approx(rows["difference"].to_numpy(), abs=1)
    assert set(rows["sites"]) == {SITES}
    assert set(rows["blocks"]) == {SITES * RUNS}


def test_numbers_that_are_0_or_have_no_unit_are_compared_too() -> None:
    rows = of_quic(web_metrics(with_numbers(), DECLARED)).loc["dsl"]
    assert rows["difference"].reindex(["content_bytes", "cls", "connections", "requests"]).to_numpy() == pytest.approx(
        [0, -0.1, 4, 0]
    )


def test_times_and_numbers_that_no_run_has_get_no_row() -> None:
    table = with_numbers()
    lacking = CampaignTable(table.runs.assign(tbt=np.nan), table.document)
    assert set(web_metrics(lacking, DECLARED)["metric"]) == {"cls", "connections", "content_bytes", "requests"}


def test_a_number_that_one_protocol_lacks_is_not_compared() -> None:
    table = with_numbers()
    has_none = table.runs["protocol"].eq("quic") & table.runs["network"].eq("lte")
    lacking = CampaignTable(table.runs.assign(cls=table.runs["cls"].mask(has_none)), table.document)
    rows = of_quic(web_metrics(lacking, DECLARED))
    assert ("dsl", "cls") in rows.index
    assert ("lte", "cls") not in rows.index
    assert ("lte", "tbt") in rows.index


def test_only_blocks_that_have_the_number_over_both_protocols_are_in_the_means() -> None:
    table = with_numbers()
    # A run without its pair, far from all others.
    is_alone = table.runs["site"].eq("s00") & table.runs["run"].eq(1)
    blocking = table.runs["tbt"].mask(is_alone & table.runs["protocol"].eq("quic"))
    blocking = blocking.mask(is_alone & table.runs["protocol"].eq("tcp+"), 1e6)
    rows = of_quic(web_metrics(CampaignTable(table.runs.assign(tbt=blocking), table.document), DECLARED))
    assert set(rows.xs("tbt", level="metric")["blocks"]) == {SITES * RUNS - 1}
    assert rows.xs("tbt", level="metric")["difference"].to_numpy() == pytest.approx(-30, abs=4)


def test_one_block_of_each_site_has_a_difference_and_no_interval() -> None:
    rows = of_quic(web_metrics(with_numbers(runs=1), DECLARED)).xs("tbt", level="metric")
    assert rows["difference"].notna().all()
    assert rows[["low", "high"]].isna().all(axis=None)


def test_campaigns_that_have_none_of_the_numbers_but_requests_have_no_rows() -> None:
    older = campaign(World(sites=SITES, runs=2), seed=1)
    table = web_metrics(CampaignTable(older.runs.assign(requests=20), older.document), DECLARED)
    assert table.empty
    assert list(table.columns) == COLUMNS
