"""Background flows next to a page, and how they share a link: measurements agree with physics and earlier work."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

from base.files import read_json
from dataset.run_files import CROSS_TRAFFIC
from dataset.table import Row, Run
from measure.campaign.method import PAGES, Method
from measure.campaign.single_load import measure_one
from measure.instruments.cross_traffic import COLUMN, read_series
from measure.run.setting import Loading, Setting
from measure.validate.network.cross_traffic import judge_cross_traffic, measure_cross_traffic
from measure.validate.protocol.largest_window import judge_largest_window, measure_largest_window
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from record.collection import load_site
from studies.fairness.measure import FairnessMethod
from studies.fairness.shares import BIN_S, rates
from tuning import protocols
from tuning.networks import Network
from tuning.protocols import Protocol

PROTOCOLS = protocols.load()
MBPS = 10.0
LINK = Network("link", min_rtt_ms=36, up_mbps=MBPS, down_mbps=MBPS, queue_ms=36)
BUSY = Network(
    "busy",
    min_rtt_ms=36,
    up_mbps=MBPS,
    down_mbps=MBPS,
    queue_ms=36,
    cross_traffic=("cubic", "quic-cubic"),
    up_cross_traffic=("cubic",),
)
SECONDS, SETTLED_S, RUNS, REPEATS = 30.0, 10.0, 3, 4

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_quic_server, pytest.mark.needs_quinn, pytest.mark.timing]


def measured(setting: Setting, method: Method, folder: Path, number: int = 1) -> Row:
    folder.mkdir(exist_ok=True)
    run = Run(setting.site.name, setting.network.name, setting.protocol.name, number)
    row = measure_one(run, setting, method, folder, REPEATS)
    assert row.valid, row.reason
    return row


def shares(protocol: Protocol, against: Protocol, folder: Path) -> Sequence[float]:
    """For each run, the share that a flow of `protocol` gets next to one of `against`, once both have settled."""
    method, of_one = FairnessMethod(against=against, seconds=SECONDS), list[float]()
    for number in range(1, RUNS + 1):
        setting = Setting(load_site("fairness-1x1"), LINK, protocol, Loading(filmed=False), seed=number)
        row = measured(setting, method, folder, number)
        series = read_series(folder / row.folder)
        one, other = rates([series[0], series[1]])[:, round(SETTLED_S / BIN_S) :].mean(axis=1)
        assert 0.85 * MBPS < one + other < MBPS
        of_one.append(one / (one + other))
    return of_one


@pytest.mark.timeout(1200)
def test_equal_flows_share_alike_and_two_emulated_connections_take_more(tmp_path: Path) -> None:
    alike = shares(PROTOCOLS["tcp+"], PROTOCOLS["tcp+"], tmp_path / "tcp")
    two = shares(PROTOCOLS["quic"], PROTOCOLS["tcp+"], tmp_path / "two")
    one = shares(PROTOCOLS["quic+1con"], PROTOCOLS["tcp+"], tmp_path / "one")
    assert 0.35 < mean(alike) < 0.65, alike
    # Kakhki et al. (IMC 2017, section 5.1).
    assert mean(two) > 0.5, two
    assert mean(two) > mean(one), (two, one)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", ["tcp+", "quic"])
def test_a_page_is_later_beside_background_flows_which_go_on(protocol: str, tmp_path: Path) -> None:
    site = load_site("demo-light")
    alone, beside = (
        measured(Setting(site, network, PROTOCOLS[protocol], seed=1), PAGES, tmp_path / network.name)
        for network in (LINK, BUSY)
    )
    assert alone.readings[COLUMN] is None
    assert 3 < float(beside.readings[COLUMN] or 0) < 20
    flows = read_json(tmp_path / BUSY.name / beside.folder / CROSS_TRAFFIC)["flows"]
    assert [(flow["name"], flow["direction"]) for flow in flows] == [
        ("cubic", "down"),
        ("quic-cubic", "down"),
        ("cubic", "up"),
    ]
    assert alone.metrics["plt"] and beside.metrics["plt"] and beside.metrics["plt"] > 1.2 * alone.metrics["plt"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("packets", [60, 107, 430])
def test_a_window_stops_growing_where_its_setting_says(packets: int, tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    protocol = replace(PROTOCOLS["quic"], max_window_packets=packets)
    (check,) = judge_largest_window(protocol, measure_largest_window(protocol, site))
    assert check.passed, check


@pytest.mark.timeout(300)
def test_flows_of_quic_are_what_the_server_says(tmp_path: Path) -> None:
    measured_flows = measure_cross_traffic(BUSY, load_site("demo-light"))
    assert [check for check in judge_cross_traffic(BUSY, measured_flows) if not check.passed] == []
    assert all(flow.min_rtt_ms for flow in measured_flows)
