"""The order of service: its protocols, its changes in worlds with a known truth, and a page whose order is known."""

import io
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support.scripted import ScriptedSlot
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.runs import CampaignTable
from base.errors import EyelevelError
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.place import measure_here
from measure.campaign.progress import ProgressDisplay
from measure.run.setting import Loading
from measure.validate.protocol.order_of_service import ORDERS as VALIDATED
from record.noise_picture import noise_picture
from record.site import write_site
from studies.order import measure as study
from studies.order.changes import METRICS, changes, typical_runs
from studies.order.figures import connections, pair_name, row_name
from studies.order.measure import STREAMS, STUDY, OrderMethod
from studies.order.orders import NGINX, ORDERS, PAIRS, PROTOCOLS
from studies.order.pages import Page, ahead_bytes, generate, page_named
from studies.order.section import section
from studies.study import Request
from tuning import protocols
from tuning.networks import Network

DECLARED = hypotheses.load()
NAME = "order-12x30KB-3"
PAGE = page_named(NAME)
# So slow that the order decides when a picture is complete, and so far that a busy machine is late by less than a round
# trip.
NETWORK = Network("narrow", min_rtt_ms=300, up_mbps=1, down_mbps=1, queue_ms=3000)
# quiche's turn is 16 kB and ends with the write that reaches them, of as many packets as the window then permits.
TURN_BYTES = 20_000


def test_each_scheduler_has_a_protocol_with_two_connections_and_one_with_one() -> None:
    known = protocols.load()
    assert {order.scheduler for order in ORDERS} == set(VALIDATED)
    for order in ORDERS:
        for name, number in ((order.of_two, None), (order.of_one, 1)):
            assert (known[name].scheduler or "urgency") == order.scheduler
            assert known[name].emulated_connections == number
            others = {**vars(known[name]), "name": "", "scheduler": None, "emulated_connections": None}
            assert others == {**vars(known["quic"]), "name": "", "scheduler": None, "emulated_connections": None}
    assert PROTOCOLS[-1] == NGINX and len(set(PROTOCOLS)) == 2 * len(ORDERS) + 1


def test_pairs_are_named_by_what_differs() -> None:
    assert [pair_name(PAIRS[place]) for place in (0, 4, 8)] == [
        "urgency-incremental (2 connections)",
        "urgency-incremental (1 connection)",
        "urgency: 1 connection instead of 2",
    ]
    assert (row_name("quic+fair"), row_name(NGINX)) == ("fair\n2 connections", "tcp+lowat")
    assert connections("quic+1con+fair") == "1 connection"


def with_paints(effects: Mapping[str, float], seed: int) -> CampaignTable:
    """A campaign over two orders in which LCP takes `effects`, and SI and FCP do not."""
    names = ("quic", "quic+first-come")
    lcp = campaign(World(sites=6, runs=8, protocols=names, effects=effects), seed)
    other = campaign(World(sites=6, runs=8, protocols=names), seed + 1000)
    runs = other.runs.assign(lcp=lcp.runs["si"].to_numpy(), fcp=0.5 * other.runs["si"])
    return CampaignTable(runs, other.document)


def test_a_change_is_found_where_it_is_and_nowhere_else() -> None:
    table = changes(with_paints({"quic+first-come": -0.2}, 1), PAIRS, DECLARED)
    assert set(table["metric"]) == set(METRICS)
    is_lcp = table["metric"] == "lcp"
    assert table.loc[is_lcp, "is_shown"].all() and not table.loc[~is_lcp, "is_shown"].any()
    assert table.loc[is_lcp, "gain"].to_numpy() == pytest.approx(-0.2, abs=0.03)
    assert (table.loc[is_lcp, "gain_low"] < -0.2).all() and (table.loc[is_lcp, "gain_high"] > -0.2).all()
    assert (table.loc[is_lcp, "ms"] < 0).all()
    assert set(table["blocks"]) == {48}


def test_equal_orders_are_seldom_shown_to_differ() -> None:
    worlds = [changes(with_paints({}, seed), PAIRS, DECLARED) for seed in range(2, 22)]
    assert sum(table["is_shown"].any() for table in worlds) <= 1
    covered = [table["gain_low"].lt(0).to_numpy() & table["gain_high"].gt(0).to_numpy() for table in worlds]
    assert np.mean(np.concatenate(covered)) >= 0.97  # all intervals of a table hold at once in 95 % of worlds


def test_a_campaign_without_these_orders_or_metrics_has_no_change() -> None:
    other = campaign(World(sites=3, runs=4), 1)
    assert changes(other, PAIRS, DECLARED).empty
    assert typical_runs(other, Path("/nowhere"), STREAMS).empty


def test_a_pages_name_says_what_it_is() -> None:
    assert Page(12, 30_000, 3) == PAGE
    for wrong in ("order-12x50KB", "order-12x50KB-13", "order-0x5KB-0", "demo-news"):
        assert page_named(wrong) is None


def test_a_page_has_pictures_of_one_size_of_which_one_is_shown_large() -> None:
    assert PAGE
    recording = generate(PAGE, NAME)
    document, *pictures = recording.exchanges
    assert [len(one.response.body) for one in pictures] == [30_000] * 12
    assert document.response.body.count(b"600px") == 1
    third = document.response.body.split(b"<img ")[3]
    assert b'/3.png"' in third and b"600px" in third
    assert len({one.response.body for one in pictures}) == 12
    assert noise_picture(50_000, "a", 600, 400)[16:24] == (600).to_bytes(4, "big") + (400).to_bytes(4, "big")


@pytest.mark.parametrize(("turn_bytes", "expected"), [(None, 60_000), (16_000, 11 * 16_000 + 2 * 14_000)])
def test_a_known_order_puts_known_bytes_ahead(turn_bytes: int | None, expected: int) -> None:
    assert PAGE and ahead_bytes(PAGE, turn_bytes) == expected


def test_another_browser_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="needs chromium"):
        study.campaign(Request(tmp_path, sites="demo-light", net="dsl", browser="firefox"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A load of the page with two orders of service."""
    folder = tmp_path_factory.mktemp("order")
    known = protocols.load()
    assert PAGE
    page = write_site(generate(PAGE, NAME), folder / NAME)
    planned = Campaign(
        folder=folder / "results",
        sites={page.name: page},
        networks={NETWORK.name: NETWORK},
        protocols={name: known[name] for name in ("quic", "quic+first-come")},
        runs=1,
        seed=1,
        loading=Loading(filmed=False),
        method=OrderMethod(),
        study={"name": STUDY},
    )
    display = partial(ProgressDisplay, Console(file=io.StringIO(), width=200))
    measure(planned, display, partial(measure_here, slot=ScriptedSlot()))
    return planned.folder


def largest_of(folder: Path) -> dict[str, Any]:
    """Protocol → the largest paint of its load."""
    files = folder.glob(f"runs/*/*/*/*/{STREAMS}")
    return {file.parent.parent.name: json.loads(file.read_text())["largest"] for file in files}


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_largest_picture_waits_as_long_as_the_order_says(measured: Path) -> None:
    """The measured delay between two orders is the model's, within a round trip."""
    largest = largest_of(measured)
    assert PAGE
    for name, turn_bytes in (("quic", TURN_BYTES), ("quic+first-come", None)):
        paint = largest[name]
        assert paint["url"].endswith("/3.png") and paint["urgency"] == 3 and paint["incremental"]
        ahead = sum(paint["ahead_bytes"].values())
        carried = NETWORK.min_rtt_ms * (NETWORK.down_mbps or 0) * 1000 / 8
        assert abs(ahead - ahead_bytes(PAGE, turn_bytes)) < carried
    delay_ms = {name: paint["arrived_ms"] - paint["requested_ms"] for name, paint in largest.items()}
    model_bytes = ahead_bytes(PAGE, TURN_BYTES) - ahead_bytes(PAGE, None)
    model_ms = model_bytes * 8 / (NETWORK.down_mbps or 1) / 1000
    assert delay_ms["quic"] - delay_ms["quic+first-come"] == pytest.approx(model_ms, abs=NETWORK.min_rtt_ms)


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_report_draws_which_data_arrived_when(measured: Path) -> None:
    part = section(measured)
    assert part
    assert [figure.name for figure in part.figures] == ["order", f"order-{NAME}-narrow"]
    assert [table.name for table in part.tables] == ["order_changes", "order_paints"]
    for figure in part.figures:
        assert figure.draw(*figure.arguments).axes
    (changed,) = part.tables[0].data.query("metric == 'lcp'").to_dict("records")
    assert (changed["reference"], changed["compared"]) == ("quic", "quic+first-come")
    assert changed["gain"] < -0.15
