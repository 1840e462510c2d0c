"""The table of the requests of the largest paints, and where a report has none."""

import numpy as np
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.report.largest_paints import paint_table, paints
from analysis.report.sections.paper import beyond
from analysis.runs import CampaignTable

DECLARED = hypotheses.load()
SITES, RUNS = 3, 5


def with_paints() -> CampaignTable:
    """A campaign whose pictures are requested at 100 ms and arrive 300 ms later, 400 ms over QUIC, after more data; the
    largest paint of a third of the runs is text."""
    table = campaign(World(sites=SITES, runs=RUNS), seed=1)
    runs = table.runs
    is_quic, is_text = runs["protocol"].eq("quic"), runs["site"].eq(runs["site"].iloc[0])
    numbers = {"lcp_requested": 100.0, "lcp_arrived": 400 + 100.0 * is_quic, "lcp_ahead": 20_000 + 40_000.0 * is_quic}
    numbers = {name: np.where(is_text, np.nan, values) for name, values in numbers.items()}
    return CampaignTable(runs.assign(lcp=900.0, **numbers), table.document)


def test_a_row_has_the_medians_of_the_runs_whose_largest_paint_needed_a_picture() -> None:
    campaign = with_paints()
    table = paints(campaign)
    assert list(table["protocol"].unique()) == [name for name in campaign.protocols if name in set(table["protocol"])]
    row = table.set_index(["network", "protocol"]).loc[(campaign.networks[0], "quic")]
    assert (row["lcp_requested"], row["lcp_arrived"], row["lcp"], row["lcp_ahead"]) == (100, 500, 900, 60_000)
    assert (row["sites"], row["runs"]) == (SITES - 1, (SITES - 1) * RUNS)
    texts = paint_table("largest_paints", table).texts
    assert list(texts)[-4:] == ["requested [ms]", "arrived [ms]", "painted [ms]", "other data ahead [kB]"]
    assert set(texts["other data ahead [kB]"]) == {"20", "60"}


def test_the_report_has_the_table_if_the_browser_gave_the_times() -> None:
    with_them, older = with_paints(), campaign(World(sites=SITES, runs=RUNS), seed=1)
    assert paints(older).empty
    for table, expected in ((with_them, 1), (older, 0)):
        names = [one.name for one in beyond(findings_of(table, DECLARED)).tables]
        assert names.count("largest_paints") == expected
