"""A grid's report: numbers computed by hand, white cells, and the comparison with the older study."""

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import stats
from support.browser import Browser
from support.declaring import declare
from support.figures import smallest_type
from support.material import REFERENCE as PUBLISHED
from support.reports import accessible_report

from analysis import hypotheses
from analysis.figures.style import SMALL
from analysis.runs import CampaignTable, load
from base.errors import EyelevelError
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, columns
from eyelevel.commands.report import main as report
from studies.grid import cells as grid_cells
from studies.grid import heatmap, wait_download
from studies.grid import section as grid
from studies.grid.cells import cells, network_label, panels
from studies.grid.hop_changes import hop_changes, hop_pairs
from studies.grid.pages import Page
from studies.grid.presets import read_preset
from studies.grid.slides import beside, by_size, change, read_old
from studies.grid.timings import COLUMNS, mean_times
from tuning import networks
from tuning.impairments.on_off import OnOff
from tuning.queues import Queue
from tuning.settings import choose

NETWORKS = networks.load()
DECLARED = hypotheses.load()
FAST, SLOW = "longlook-100mbps-62ms-0loss", "longlook-10mbps-62ms-0.01loss"
Times = Mapping[tuple[str, str, str], Sequence[float]]


def write(folder: Path, times: Times, *, preset: str = "longlook", pages: Sequence[str] = (), **study: object) -> Path:
    """A grid in `folder` with page load times of (site, network, protocol); None is a load that took too long."""
    sites = dict.fromkeys([*(site for site, _, _ in times), *pages])
    chosen = dict.fromkeys(network for _, network, _ in times)
    names = dict.fromkeys(protocol for _, _, protocol in times)
    settings = {"seed": 1, "runs": 3, "filmed": False, "limit_s": 60.0, "sites": {site: {} for site in sites}}
    settings |= {
        "networks": {name: asdict(NETWORKS[name]) for name in chosen},
        "protocols": {name: {} for name in names},
    }
    description = {"name": "grid", "preset": preset, "pages": list(sites), "left_out": [], **study}
    folder.mkdir(parents=True)
    (folder / "campaign.json").write_text(
        json.dumps({"settings": settings, "study": description, "machine": {"cpus": 2}})
    )
    with (folder / "runs.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(columns())
        for (site, network, protocol), values in times.items():
            for number, plt in enumerate(values, start=1):
                late = bool(np.isnan(plt))
                row = dict.fromkeys(columns(), "")
                row |= {"site": site, "network": network, "protocol": protocol, "run": str(number), "attempt": "1"}
                row |= {"block": str(number)}
                row |= {"valid": "false" if late else "true", "plt": "" if late else f"{plt:g}"}
                row |= {"reason": "over_time: not loaded within 60 s" if late else ""}
                row |= {"folder": f"runs/{site}/{network}/{protocol}/{number}-1"}
                writer.writerow(row[column] for column in columns())
    return folder


@pytest.fixture
def longlook(tmp_path: Path) -> Path:
    """Three pages on two networks: one cell certain, one not, one too slow, one beyond the budget, two not measured."""
    times = {
        ("grid-1x5KB", FAST, "tcp+"): (200, 201, 199),
        ("grid-1x5KB", FAST, "quic"): (150, 151, 149),
        ("grid-1x5KB", SLOW, "tcp+"): (100, 110, 120),
        ("grid-1x5KB", SLOW, "quic"): (100, 80, 90),
        ("grid-1x10000KB", FAST, "tcp+"): (1000, 1010, 990),
        ("grid-1x10000KB", FAST, "quic"): (1000, np.nan, 1200),
    }
    left_out = [{"site": "grid-1x10000KB", "network": SLOW, "of": "budget", "reason": "would take about 9 min"}]
    return write(tmp_path / "grid", times, pages=("grid-2x5KB",), left_out=left_out)


def cell(result: pd.DataFrame, site: str, network: str) -> "pd.Series[float]":
    (row,) = (row for _, row in result.iterrows() if (row["site"], row["network"]) == (site, network))
    return row


def of_one_cell(tmp_path: Path, reference: Sequence[float], compared: Sequence[float]) -> Any:
    """The numbers of a grid with one cell, on a network of 62 ms."""
    times = {("grid-1x5KB", FAST, "tcp+"): reference, ("grid-1x5KB", FAST, "quic"): compared}
    (row,) = cells(load(write(tmp_path / "one", times)), DECLARED).to_dict("records")
    return row


def test_a_cell_is_compared_within_rounds_as_worked_out_by_hand(tmp_path: Path) -> None:
    # Log ratios of -0.1, -0.2 and -0.3: mean -0.2, error 0.1 / sqrt(3), t = 2 sqrt(3) = 3.464 with 2 degrees of
    # freedom, which gives p = 0.0742; the interval spans 4.303 errors.
    factors = np.exp([-0.1, -0.2, -0.3])
    result = of_one_cell(tmp_path, (1000, 3000, 2000), tuple(np.array([1000, 3000, 2000]) * factors))
    assert result["gain"] == pytest.approx(np.exp(-0.2) - 1, abs=1e-5)
    assert result["p"] == result["p_corrected"] == pytest.approx(0.0742, abs=1e-4)
    ends = np.exp(-0.2 + np.array([-1, 1]) * 4.3027 * 0.1 / np.sqrt(3)) - 1
    assert (result["gain_low"], result["gain_high"]) == pytest.approx(ends, abs=1e-4)
    assert (result["rounds"], result["verdict"], result["mean_reference"]) == (3, "not decided", 2000)
    # Half of 62 ms, relative to the geometric mean of the times.
    assert result["margin"] == pytest.approx(31 / 6e9 ** (1 / 3), abs=1e-5)


def test_what_is_the_same_in_every_round_is_found_however_rounds_differ(tmp_path: Path) -> None:
    reference = np.array([500, 1000, 2000, 4000, 8000, 700.0])
    jitter = np.array([1.01, 0.99, 1.0, 1.02, 0.98, 1.0])
    quicker = of_one_cell(tmp_path / "a", tuple(reference), tuple(0.8 * jitter * reference))
    assert (quicker["verdict"], round(quicker["gain"], 2)) == ("faster", -0.2)
    assert of_one_cell(tmp_path / "b", tuple(0.8 * jitter * reference), tuple(reference))["verdict"] == "slower"


def test_equivalence_must_be_shown_and_a_small_difference_that_is_not_is_not_decided(tmp_path: Path) -> None:
    # Half a round trip of 62 ms is 31 % of 100 ms, and 0.3 % of 10 s.
    jitter = np.array([1.02, 0.98, 1.01, 0.99, 1.0, 1.0])
    same = of_one_cell(tmp_path / "a", (100,) * 6, tuple(100 * jitter))
    assert (same["verdict"], round(same["margin"], 2)) == ("equivalent", 0.31)
    unsure = of_one_cell(tmp_path / "b", (10_000,) * 6, tuple(10_000 * jitter))
    assert (unsure["verdict"], round(unsure["gain"], 3)) == ("not decided", 0)


def test_p_values_are_corrected_over_all_cells_that_are_tested(longlook: Path) -> None:
    result = cells(load(longlook), DECLARED)
    tested = result[result["p"].notna()]
    assert len(tested) == 2
    least, most = sorted(tested["p"])
    assert sorted(tested["p_corrected"]) == pytest.approx([min(2 * least, most), most])


@pytest.mark.slow
def test_cells_without_a_difference_are_seldom_said_to_have_one(tmp_path: Path) -> None:
    random = np.random.default_rng(14)
    settings = product(("grid-1x5KB", "grid-1x10KB"), (FAST, SLOW), ("tcp+", "quic"))
    campaign = load(write(tmp_path / "grid", dict.fromkeys(settings, (1000,) * 5)))
    wrong = 0
    for _ in range(40):
        runs = campaign.runs.assign(plt=1000 * np.exp(random.normal(0, 0.1, len(campaign.runs))))
        verdicts = cells(replace(campaign, runs=runs), DECLARED)["verdict"]
        wrong += bool(verdicts.isin(["faster", "slower"]).any())
    # One wrong campaign in a hundred is expected; four or more of forty have a probability of one in a thousand.
    assert wrong <= 3


def test_each_cell_says_what_became_of_it(longlook: Path) -> None:
    result = cells(load(longlook), DECLARED)
    assert len(result) == 3 * 2
    sure, unsure = (cell(result, "grid-1x5KB", network) for network in (FAST, SLOW))
    assert (round(sure["gain"], 3), sure["verdict"], sure["state"]) == (-0.25, "faster", "measured")
    assert (unsure["verdict"], unsure["state"], unsure["rounds"]) == ("not decided", "measured", 3)
    late, budget = (cell(result, "grid-1x10000KB", network) for network in (FAST, SLOW))
    assert (late["state"], late["remark"]) == ("time", "1 of 6 loads did not end in time")
    # The loads that did end in time are not a representative sample.
    assert (late["rounds"], late["runs_reference"], late["verdict"]) == (0, 0, "")
    assert late[["mean_reference", "mean_compared", "gain", "p", "p_corrected"]].isna().all()
    assert (budget["state"], budget["remark"]) == ("budget", "would take about 9 min")
    assert cell(result, "grid-2x5KB", FAST)["state"] == "open"


def test_loads_of_different_rounds_are_not_compared(tmp_path: Path) -> None:
    folder = write(tmp_path / "apart", {("grid-1x5KB", FAST, "tcp+"): (200,), ("grid-1x5KB", FAST, "quic"): (150,)})
    runs = (
        (folder / "runs.csv")
        .read_text()
        .replace("tcp+,1,1,true", "tcp+,2,1,true")
        .replace("tcp+/1-1,1,", "tcp+/2-1,2,")
    )
    (folder / "runs.csv").write_text(runs)
    (row,) = cells(load(folder), DECLARED).to_dict("records")
    assert (row["rounds"], row["state"], row["remark"]) == (0, "open", "no round counts")
    assert (row["runs_reference"], row["runs_compared"]) == (1, 1)


def test_a_grid_without_a_load_that_counts_has_cells_all_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path / "none", {("grid-1x5KB", FAST, name): (np.nan,) for name in ("tcp+", "quic")})
    assert cells(load(folder), DECLARED)["state"].tolist() == ["time"]
    assert grid.section(folder)


def test_a_load_that_takes_too_long_is_of_its_protocols_cells_alone(tmp_path: Path) -> None:
    times = {("grid-1x5KB", FAST, name): (200, 201, 199) for name in ("tcp+", "quic")}
    folder = write(tmp_path / "three", {**times, ("grid-1x5KB", FAST, "tcp"): (500, np.nan, 500)})
    result = cells(load(folder), DECLARED).set_index("compared")["state"]
    assert result.to_dict() == {"quic": "measured", "tcp": "time"}


def heat_map(longlook: Path) -> Figure:
    (figure,) = grid.heat_maps(load(longlook), cells(load(longlook), DECLARED))
    return figure.draw(*figure.arguments)


def test_the_heat_map_is_coloured_where_a_difference_is_shown_and_hatched_where_nothing_is(longlook: Path) -> None:
    by_size, by_count = heat_map(longlook).axes[:2]
    assert [label.get_text() for label in by_size.get_xticklabels()] == ["5 KB", "10 MB"]
    assert [label.get_text() for label in by_count.get_xticklabels()] == ["1", "2"]
    rows = ["100 Mbit/s, 62 ms", "10 Mbit/s, 62 ms,\n1 % loss"]
    assert [label.get_text() for label in by_size.get_yticklabels()] == rows
    values: np.ndarray[Any, Any] = np.ma.filled(np.ma.asarray(by_size.images[0].get_array(), dtype=float), np.nan)
    assert round(values[0, 0], 3) == -0.25
    assert np.isnan(values).sum() == 3
    texts = {text.get_position(): text.get_text() for text in by_size.texts}
    assert texts == {(0, 0): "-25\n(3)", (0, 1): "-18 ?\n(3)", (1, 0): "time", (1, 1): "budget"}
    hatched = {patch.get_xy() for patch in by_size.patches if isinstance(patch, Rectangle) and patch.get_hatch()}
    assert hatched == {(0.5, -0.5), (0.5, 0.5)}


def add_first_paints(folder: Path, factors: Mapping[str, float]) -> Path:
    """Adds FCP to the loads of the grid in `folder`: its page load time times the factor of the protocol."""
    runs = pd.read_csv(folder / "runs.csv", dtype=str, keep_default_na=False)
    times = pd.to_numeric(runs["plt"]) * runs["protocol"].map(factors)
    runs.assign(fcp=times.map(lambda ms: "" if np.isnan(ms) else f"{ms:g}")).to_csv(folder / "runs.csv", index=False)
    return folder


def test_first_paints_have_a_map_and_a_table_of_their_own_and_change_no_other(longlook: Path) -> None:
    before = grid.section(longlook)
    assert before and [table.name for table in before.tables] == ["grid_cells"]
    section = grid.section(add_first_paints(longlook, {"tcp+": 0.5, "quic": 1}))
    assert section
    assert [figure.name for figure in section.figures] == ["heatmap_quic", "heatmap_quic_fcp"]
    of_plt, of_fcp = section.tables
    pd.testing.assert_frame_equal(of_plt.data, before.tables[0].data)
    assert (of_fcp.name, of_fcp.title) == ("grid_cells_fcp", "Every cell: FCP")
    # QUIC's page load time is 25 % lower, its FCP half as long again.
    sure = cell(of_fcp.data, "grid-1x5KB", FAST)
    assert (round(sure["gain"], 3), sure["verdict"], sure["mean_reference"]) == (0.5, "slower", 100)
    assert cell(of_fcp.data, "grid-1x10000KB", FAST)["state"] == "time"
    assert "change in FCP (first contentful paint)" in section.figures[1].caption
    assert (
        "QUIC against TCP+, by FCP: faster in 0, slower in 1, equivalent in 0, not decided in 1 cells."
        in (section.paragraphs[0])
    )


HOP = "longlook-edge-62ms-0loss"


def hop_grid(folder: Path, times: Mapping[tuple[str, str], Sequence[float]]) -> Path:
    """A grid of one page on networks that differ only in their hop, with the times of (kind, protocol)."""
    return write(
        folder,
        {("grid-1x5KB", f"{HOP}-{kind}", protocol): plts for (kind, protocol), plts in times.items()},
        preset="longlook-edge",
    )


def test_what_a_hop_changes_is_worked_out_by_hand_for_each_protocol_by_itself(tmp_path: Path) -> None:
    # The logarithms are 6, 7, 8 and 5, 6, 7: a difference of -1, error sqrt(2/3), t = 1.2247 with 4 degrees of freedom,
    # which gives p = 0.2879.
    without, with_hop = tuple(np.exp([6, 7, 8.0])), tuple(np.exp([5, 6, 7.0]))
    same = (100.0, 101.0, 99.0)
    times: dict[tuple[str, str], Sequence[float]] = {("none", "caddy-h2"): without, ("terminate", "caddy-h2"): with_hop}
    times |= {("none", "caddy-h3"): same, ("terminate", "caddy-h3"): same}
    campaign = load(hop_grid(tmp_path / "grid", times))
    changes = hop_changes(campaign, "plt", DECLARED).set_index("protocol")
    assert list(changes.index) == ["caddy-h2", "caddy-h3"]
    assert (changes["network"] == f"{HOP}-terminate").all() and (changes["control"] == f"{HOP}-none").all()
    of_h2 = changes.loc["caddy-h2"]
    assert of_h2["change"] == pytest.approx(np.exp(-1) - 1)
    ends = np.exp(-1 + np.array([-1, 1]) * stats.t.ppf(0.975, 4) * np.sqrt(2 / 3)) - 1
    assert (of_h2["change_low"], of_h2["change_high"]) == pytest.approx(tuple(ends), rel=1e-3)
    # The correction is for two tests; the other has p = 1.
    assert of_h2["p_corrected"] == pytest.approx(2 * 0.2879, abs=1e-3)
    assert (of_h2["loads_without"], of_h2["loads_with"], of_h2["verdict"]) == (3, 3, "not decided")
    assert of_h2["mean_without"] == pytest.approx(np.mean(without))
    assert changes.loc["caddy-h3", "change"] == pytest.approx(0)


def test_what_a_hop_changes_has_a_map_for_each_protocol_and_a_table_and_is_said(tmp_path: Path) -> None:
    slow, fast = (1000.0, 1010.0, 990.0, 1005.0), (500.0, 505.0, 495.0, 502.0)
    times = {("none", "caddy-h2"): slow, ("terminate", "caddy-h2"): fast}
    times |= {("none", "caddy-h3"): fast, ("terminate", "caddy-h3"): slow}
    section = grid.section(hop_grid(tmp_path / "grid", times))
    assert section
    figures = {figure.name: figure for figure in section.figures}
    texts = []
    for protocol in ("caddy-h2", "caddy-h3"):
        drawn = figures[f"hop_{protocol}"].draw(*figures[f"hop_{protocol}"].arguments)
        (text,) = [text.get_text() for text in drawn.axes[0].texts]
        texts.append(text)
    assert texts == ["-50\n(4)", "+100\n(4)"]
    (table,) = [table for table in section.tables if table.name == "grid_hops"]
    assert table.texts["verdict"].tolist() == ["faster", "slower"]
    assert any("With the hop, against the same two halves without it" in text for text in section.paragraphs)
    section = grid.section(add_first_paints(tmp_path / "grid", {"caddy-h2": 0.5, "caddy-h3": 0.5}))
    assert section
    assert {"hop_caddy-h2_fcp", "hop_caddy-h3_fcp"} <= {figure.name for figure in section.figures}
    (table,) = [table for table in section.tables if table.name == "grid_hops_fcp"]
    assert table.texts["verdict"].tolist() == ["faster", "slower"]
    assert any("; by FCP, caddy-h2 is faster in 1," in text for text in section.paragraphs)


@pytest.mark.slow
def test_the_names_of_a_maps_rows_do_not_overlap_however_long_they_are(tmp_path: Path) -> None:
    times = {
        ("grid-1x5KB", f"longlook-edge-{delay}ms-0loss-{kind}", protocol): (1000.0, 1010.0)
        for delay in (12, 62, 112)
        for kind in ("none", "terminate")
        for protocol in ("caddy-h2", "caddy-h3")
    }
    section = grid.section(write(tmp_path / "grid", times, preset="longlook-edge"))
    assert section
    for figure in section.figures:
        drawn = figure.draw(*figure.arguments)
        drawn.draw_without_rendering()
        extents = [label.get_window_extent() for label in drawn.axes[0].get_yticklabels()]
        assert len(extents) > 1
        for upper, lower in pairwise(extents):
            assert not upper.overlaps(lower)


def test_a_page_that_did_not_always_load_in_time_says_nothing_of_a_hop(tmp_path: Path) -> None:
    times = {("none", "caddy-h2"): (1000, 1000, 1000), ("terminate", "caddy-h2"): (500, 500, np.nan)}
    times |= {("none", "caddy-h3"): (1000, 1010, 990), ("terminate", "caddy-h3"): (500, 505, 495)}
    changes = hop_changes(load(hop_grid(tmp_path / "grid", times)), "plt", DECLARED)
    assert changes["protocol"].tolist() == ["caddy-h3"]


def test_networks_without_a_hop_have_no_section_on_hops(longlook: Path) -> None:
    assert hop_changes(load(longlook), "plt", DECLARED).empty
    section = grid.section(longlook)
    assert section and not any(table.name == "grid_hops" for table in section.tables)


def pairs_of(settings: CampaignSettings) -> dict[str, str]:
    """Each network with an active hop → its control."""
    campaign = CampaignTable(pd.DataFrame(), CampaignDocument(settings))
    return {pair.network: pair.control for pair in hop_pairs(campaign)}


def test_a_hop_is_compared_with_what_is_the_same_but_for_it() -> None:
    names = "longlook-hop-12ms,longlook-hop-62ms,longlook-edge-62ms,geo-split,geo-control,dsl"
    chosen = choose("network", names, NETWORKS)
    pairs = pairs_of(CampaignSettings(networks={one.name: asdict(one) for one in chosen}))
    assert pairs["geo-split"] == "geo-control"
    assert pairs["longlook-hop-12ms-100mbps-0.01loss-split"] == "longlook-hop-12ms-100mbps-0.01loss-none"
    assert len(pairs) == 6 + 6 + 3 + 1


def test_a_hop_is_compared_with_what_the_same_browser_did_without_it() -> None:
    networks = {kind: asdict(NETWORKS[f"{HOP}-{kind}"]) for kind in ("none", "terminate")}
    settings = CampaignSettings(networks=networks, browser={"name": "chromium"}, further_browsers={"firefox": {}})
    assert pairs_of(settings) == {"terminate": "none", "terminate@firefox": "none@firefox"}


def test_no_type_of_the_heat_map_is_smaller_than_seven_points(longlook: Path) -> None:
    assert smallest_type(heat_map(longlook)) >= SMALL


def test_only_a_difference_has_a_colour_and_all_verdicts_differ_without_any() -> None:
    verdicts = ("faster", "slower", "equivalent", "not decided")
    gains = (-0.4, 0.4, 0.01, -0.01)
    by_place = {
        (0, x): heatmap.Cell(gain, verdict, 10) for x, (gain, verdict) in enumerate(zip(gains, verdicts, strict=True))
    }
    axes = heatmap.draw([heatmap.Map("size", list("abcd"), by_place)], ["net"]).axes[0]
    values: np.ndarray[Any, Any] = np.ma.filled(np.ma.asarray(axes.images[0].get_array(), dtype=float), np.nan)
    assert np.isfinite(values).tolist() == [[True, True, False, False]]
    ((cold, warm),) = axes.images[0].to_rgba(np.array([[-0.4, 0.4]]))
    # Faster is blue, as in all figures.
    assert warm[0] > 2 * warm[2]
    assert cold[2] > cold[1]
    assert [text.get_text() for text in axes.texts] == ["-40\n(10)", "+40\n(10)", "+1 =\n(10)", "-1 ?\n(10)"]


def test_pages_stand_by_what_varies() -> None:
    controlled, longlook = (panels(read_preset(name).pages()) for name in ("controlled", "longlook"))
    assert [len(panel.pages) for panel in controlled] == [12]
    assert [(panel.title, len(panel.pages)) for panel in longlook] == [
        ("size of one object", 8),
        ("number of objects of 10 KB", 6),
    ]
    assert [page.count for page in longlook[1].pages] == [1, 2, 5, 10, 100, 200]
    spread = panels([Page(count, 1000, servers) for count in (1, 2) for servers in (1, 4)])
    assert [panel.title for panel in spread] == [
        "number of objects of 1 KB, 1 server",
        "number of objects of 1 KB, 4 servers",
    ]


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (FAST, "100 Mbit/s, 62 ms"),
        ("controlled-200ms", "no rate limit, 200 ms, 2 % loss on the uplink"),
        ("longlook-jitter-10mbps", "10 Mbit/s, 112 ms ± 10 ms, reordering"),
        ("longlook-varying", "varying, 101 Mbit/s by mean, 12 ms"),
    ],
)
def test_a_network_has_a_short_label(network: str, text: str) -> None:
    assert network_label(asdict(NETWORKS[network])) == text


def test_repairs_and_chosen_packets_are_part_of_a_label() -> None:
    network = replace(NETWORKS["da2gc"], retransmit_ms=60, drop_down_packets=(7,))
    repaired = "0.468 Mbit/s, 262 ms, 3.3 % loss repaired in 60 ms, chosen packets dropped"
    assert network_label(asdict(network)) == repaired
    network = replace(network, retransmit_tries=4, retransmit_reorder=True, drop_down_packets=None)
    assert network_label(asdict(network)) == "0.468 Mbit/s, 262 ms, 3.3 % loss repaired in 60 ms 3 times out of order"
    network = replace(NETWORKS["lte"], up_queue=Queue("codel"), on_off=OnOff(5, 1))
    assert network_label(asdict(network)) == (
        "10.5 Mbit/s, 74 ms, uplink queue codel, off for 1 s after 5 s, on average"
    )
    # A campaign from before these keys has none of them.
    assert network_label({"min_rtt_ms": 1, "drop_up_packets": None}) == "no rate limit, 1 ms"


def test_the_bars_are_of_what_the_browser_told(longlook: Path) -> None:
    for protocol, wait, receive in (("tcp+", 70, 930), ("quic", 64, 950)):
        folder = longlook / f"runs/grid-1x10000KB/{FAST}/{protocol}/1-1"
        folder.mkdir(parents=True)
        entries = [
            {"request": {"url": "https://grid.example/"}, "timings": {"wait": 1, "receive": 2}},
            {"request": {"url": "https://grid.example/0.png"}, "timings": {"wait": wait, "receive": receive}},
        ]
        (folder / "browsertime.har.gz").write_bytes(gzip.compress(json.dumps({"log": {"entries": entries}}).encode()))
    (figure,) = grid.bars(load(longlook), 0.95)
    heights = [bar.get_height() for bar in figure.draw(*figure.arguments).axes[0].patches if isinstance(bar, Rectangle)]
    assert heights == [70, 930, 64, 950]
    assert smallest_type(figure.draw(*figure.arguments)) >= SMALL
    (folder / "browsertime.har.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(EyelevelError, match="has no timings of the page's image"):
        grid.bars(load(longlook), 0.95)


def test_the_bars_have_the_intervals_of_the_mean_wait_and_of_the_mean_of_both() -> None:
    rows = [(FAST, "quic", 1, 60.0, 900.0), (FAST, "quic", 2, 70.0, 950.0), (FAST, "tcp+", 1, 80.0, 800.0)]
    times = mean_times(pd.DataFrame(rows, columns=COLUMNS), 0.95)
    # With one degree of freedom t is 12.706, and the error of two runs is half of their difference.
    wait_ms, both_ms = times[FAST, "quic"].wait_ms, times[FAST, "quic"].both_ms
    assert (wait_ms.mean, wait_ms.low, wait_ms.high) == pytest.approx((65, 65 - 63.53, 65 + 63.53), abs=0.01)
    assert (both_ms.mean, both_ms.high - both_ms.mean, both_ms.runs) == pytest.approx((990, 12.706 * 30, 2), abs=0.01)
    assert not times[FAST, "tcp+"].both_ms.has_interval
    axes = wait_download.draw(times, [(FAST, "fast")], ["tcp+", "quic"]).axes[0]
    intervals = [bars for bars in axes.collections if isinstance(bars, LineCollection)]
    ends = sorted(np.asarray(segment)[:, 1].tolist() for bars in intervals for segment in bars.get_segments())
    assert np.ravel(ends) == pytest.approx([wait_ms.low, wait_ms.high, both_ms.low, both_ms.high])


@pytest.mark.parametrize("preset", ["controlled", "uncontrolled"])
def test_the_old_study_has_a_time_of_each_cell_of_its_preset(preset: str) -> None:
    old, cell_names = read_old(preset), ["network", "protocol", "count", "size_bytes"]
    grid_of_preset = read_preset(preset)
    names = [network.name for network in choose("network", grid_of_preset.networks, NETWORKS)]
    pages = [(page.count, page.size_bytes) for page in grid_of_preset.pages()]
    cells_of_preset = product(names, grid_of_preset.protocols, pages)
    assert {tuple(row) for row in old[cell_names].itertuples(index=False)} == {
        (network, protocol, *page) for network, protocol, page in cells_of_preset
    }
    assert not old.duplicated(cell_names).any()


@pytest.mark.needs_reference
def test_the_old_study_is_transcribed_without_a_slip() -> None:
    conditions = {"0% (5ms)": "controlled-clean", "2% (100ms)": "controlled-100ms", "2% (200ms)": "controlled-200ms"}
    for level, loss in (("base", "0loss"), ("L0", "0loss"), ("L2", "0.02loss")):
        for delay, rtt_ms in (("25 RTT", 25), ("+50 RTT", 75), ("+100 RTT", 125), ("+200 RTT", 225)):
            conditions[f"{level} ({delay})"] = f"uncontrolled-{rtt_ms}ms-{loss}"
    counts = {"low": 10, "high": 196}
    sizes = {"100bytes": 100, "1Kb": 1000, "10Kb": 10_000, "300Kb": 300_000}
    sizes |= {"small": 10_000, "medium": 50_000, "large": 110_000}
    transcribed: dict[str, dict[Any, float]] = {"controlled": {}, "uncontrolled": {}}
    for row in csv.DictReader((PUBLISHED / "slides_plt.csv").open()):
        count, size = row["page"].split(" @ " if "@" in row["page"] else "-")
        page = (counts.get(count) or int(count), sizes[size])
        protocol = {"TCP /w SSL": "tcp+", "HTTP/2": "tcp+", "QUIC": "quic"}[row["protocol"]]
        transcribed[row["scenario"]][conditions[row["condition"]], protocol, *page] = float(row["plt_ms"])
    names = ["network", "protocol", "count", "size_bytes", "plt_ms"]
    for preset, times in transcribed.items():
        assert {tuple(row[:4]): row[4] for row in read_old(preset)[names].itertuples(index=False)} == times


def test_what_changed_since_the_old_study_is_told(tmp_path: Path) -> None:
    times = {
        ("grid-2x100B", "controlled-clean", "tcp+"): (100, 101, 99),
        ("grid-2x100B", "controlled-clean", "quic"): (60, 61, 59),
        ("grid-128x300KB", "controlled-100ms", "tcp+"): (1000, 1001, 999),
        ("grid-128x300KB", "controlled-100ms", "quic"): (500, 501, 499),
    }
    folder = write(tmp_path / "controlled", times, preset="controlled")
    result = beside(cells(load(folder), DECLARED), read_old("controlled"))
    by_cell = {(row["site"], row["network"]): row for _, row in result.iterrows()}
    same, other = by_cell["grid-2x100B", "controlled-clean"], by_cell["grid-128x300KB", "controlled-100ms"]
    # The older values are 50.64 over TCP and 38 over QUIC.
    assert same["old_gain"] == pytest.approx((38 - 50.64) / 50.64)
    assert (same["old_word"], same["word"], same["verdict"], same["change"]) == (
        "faster",
        "faster",
        "faster",
        "as then",
    )
    assert (other["old_word"], other["change"]) == ("slower", "slower then, faster now")
    section = grid.section(folder)
    assert section
    assert section.paragraphs[2] == (
        "The older study shows means without their scatter. By the size of the difference of means alone (similar: "
        "less than 5 %), 1 of 2 cells are as then; slower then, faster now: 1. "
        "The test of this report confirms 1 of these changes."
    )
    assert [table.name for table in section.tables] == ["controlled", "grid_cells"]
    assert set(section.tables[0].texts["loss, delay"]) == {"0 %, 5 ms", "2 %, 100 ms"}
    assert change("slower", "") == ""


def test_what_the_old_study_did_not_control_is_beside_the_grid_of_that_name(tmp_path: Path) -> None:
    times = {
        ("grid-196x10KB", "uncontrolled-75ms-0loss", "tcp+"): (900, 901, 899),
        ("grid-196x10KB", "uncontrolled-75ms-0loss", "quic"): (700, 701, 699),
    }
    section = grid.section(write(tmp_path / "uncontrolled", times, preset="uncontrolled"))
    assert section
    (row,) = section.tables[0].data.to_dict("records")
    assert (row["old_reference"], row["old_compared"], row["change"]) == (5053.31, 2686.37, "as then")
    assert "neither their sizes nor the rate" in section.paragraphs[3]


@pytest.mark.needs_axe
def test_everybody_can_read_the_section(browser: Browser, longlook: Path) -> None:
    assert accessible_report(browser, longlook) == []


def test_the_words_for_the_older_study_go_by_size_alone() -> None:
    assert [by_size(gain) for gain in (-0.3, 0.3, -0.04, 0.04, np.nan)] == [
        "faster",
        "slower",
        "similar",
        "similar",
        "",
    ]


def test_a_section_says_what_limits_it(longlook: Path) -> None:
    section = grid.section(longlook)
    assert section
    assert section.paragraphs[0].startswith(
        "3 pages on 2 networks over TCP+ and QUIC: 2 of 6 cells measured, 3 rounds each"
    )
    assert section.paragraphs[-1] == (
        "1 cell cannot finish in the 60 s that a load may take. "
        "1 cell did not fit into the budget, which was used for the shorter ones."
    )


def test_a_grid_is_judged_by_the_hypotheses_that_it_declared(longlook: Path) -> None:
    declare(longlook, confidence=0.8, significant_p=0.09, equivalence_round_trips=2)
    section = grid.section(longlook)
    assert section
    assert (
        "corrected p < 0.09. Equivalent: shown, as surely, to differ by less than 2 round trips of the network."
        in (section.paragraphs[1])
    )
    (table,) = section.tables
    assert "80 % interval" in table.texts
    sure = cell(table.data, "grid-1x5KB", FAST)
    ratios = np.log([150 / 200, 151 / 201, 149 / 199])
    reach = stats.t.ppf(0.9, 2) * stats.sem(ratios)
    ends = np.expm1([ratios.mean() - reach, ratios.mean() + reach])
    assert (sure["gain_low"], sure["gain_high"]) == pytest.approx(ends, abs=1e-4)


def test_early_data_is_told_to_be_of_a_second_visit(tmp_path: Path) -> None:
    times = {("grid-1x5KB", FAST, "quic"): (200, 201, 199), ("grid-1x5KB", FAST, "quic+0rtt"): (150, 151, 149)}
    folder = write(tmp_path / "early", times)
    document = json.loads((folder / "campaign.json").read_text())
    document["settings"]["protocols"]["quic+0rtt"]["early_data"] = True
    assert grid.returning(load(folder)) == []
    (folder / "campaign.json").write_text(json.dumps(document))
    section = grid.section(folder)
    assert section
    assert section.paragraphs[-1].startswith(
        "Loads over quic+0rtt are a browser's second visit, those over QUIC its first."
    )


def test_another_folder_has_no_grid(tmp_path: Path) -> None:
    assert grid.section(tmp_path) is None


def test_a_folder_without_campaign_and_study_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(report, [str(tmp_path)])
    assert isinstance(done.exception, EyelevelError)
    assert "is not a campaign" in str(done.exception)
    assert not (tmp_path / "report").exists()


def test_states_of_cells_have_words() -> None:
    assert set(grid.REASONS) == {grid_cells.TIME, grid_cells.BUDGET}
