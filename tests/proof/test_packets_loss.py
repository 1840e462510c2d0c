"""Captures of loads with losses.

Every byte is accounted for, and retransmissions are recognised. One loss blocks other streams over TCP for as long as
it must, and does not over QUIC.
"""

from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from dataset.table import require_document, valid_rows
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.progress import ProgressDisplay
from measure.run.setting import Loading
from record import collection
from record.generated import generated_exchange
from record.site import Recording, Site, write_site
from studies.packets.bytes import AGAIN, KINDS, PAYLOAD, UNREAD
from studies.packets.files import STUDY
from studies.packets.measure import PacketsMethod
from studies.packets.ping import ECHOES
from studies.packets.runs import CapturedRun, read_run
from tuning import networks, protocols
from tuning.networks import Network

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="packets", lanes=4)]

PROTOCOLS = ("tcp+", "quic")
RUNS = 3

# The network has no rate, so nothing queues: the packets after a loss reveal it at once, and its repair takes a round
# trip.
RTT_MS = 400.0
# The numbers of packets to the browser of which one is lost. The first packets answer the pings; packets with these
# numbers mostly carry content, over either transport. Some carry none, but acknowledge requests: if the lost packet was
# one of these, the next number is tried.
LOST_PACKETS = tuple(ECHOES + number for number in (98, 104, 110, 116))
# Each style sheet is so small that the data after a lost packet belongs to other streams.
STYLES, STYLE_BYTES = 120, 1100
# TCP may wait a quarter of a round trip for reordered packets (RFC 8985, section 6.2).
REORDERING_MS = RTT_MS / 4
# From the detection of a loss to its repair it takes a round trip, plus the delays of a busy machine.
BUSY_MS = 100.0


def captured_runs(folder: Path, site: Site, network: Network, runs: int) -> list[CapturedRun]:
    """`runs` loads of `site` over each transport, dissected."""
    campaign = Campaign(
        folder=folder / "packets",
        sites={site.name: site},
        networks={network.name: network},
        protocols={name: protocols.load()[name] for name in PROTOCOLS},
        runs=runs,
        seed=1,
        loading=Loading(filmed=False),
        method=PacketsMethod(),
        study={"name": STUDY},
    )
    measure(campaign, partial(ProgressDisplay, Console()))
    rows, document = valid_rows(campaign.folder, STUDY), require_document(campaign.folder)
    assert len(rows) == runs * len(PROTOCOLS)
    return [read_run(campaign.folder, document, row) for row in rows]


@pytest.mark.parametrize("network", ["da2gc", "mss"])
@pytest.mark.parametrize("site", ["demo-light", "demo-news"])
def test_loads_with_losses_are_accounted_for_to_the_last_byte(site: str, network: str, tmp_path: Path) -> None:
    payloads_bytes, again_bytes = set(), 0
    for run in captured_runs(tmp_path, collection.load_site(site), networks.load()[network], RUNS):
        for row in run.captures:
            assert sum(row[kind] for kind in KINDS) == row["bytes"]
            assert row["protocol"] != "quic" or row[UNREAD] == 0
            again_bytes += row[AGAIN]
            if row["direction"] == "down":
                payloads_bytes.add(row[PAYLOAD])
    assert again_bytes
    if site == "demo-light":  # the requests of others depend on time
        assert len(payloads_bytes) == 1


def styles(folder: Path) -> Site:
    """A page with style sheets, all from one server. The browser requests all at once, over either transport."""
    address, style = "192.0.2.1", b"/*" + b"-" * STYLE_BYTES + b"*/"
    urls = [f"https://styles.example/{number}" for number in range(STYLES)]
    page = '<!doctype html><link rel="icon" href="data:,">' + "".join(
        f'<link rel="stylesheet" href="{u}">' for u in urls
    )
    exchanges = [generated_exchange("https://styles.example/", "text/html", page.encode(), address)]
    exchanges += [generated_exchange(url, "text/css", style, address) for url in urls]
    return write_site(
        Recording("https://styles.example/", tuple(exchanges), {"name": "eyelevel test"}), folder / "styles"
    )


def styles_with_loss(folder: Path, lost_packet: int | None) -> dict[str, CapturedRun]:
    """A load of the style sheets over each transport, in which this packet to the browser was lost."""
    network = Network("far", min_rtt_ms=RTT_MS, drop_down_packets=(lost_packet,) if lost_packet else None)
    runs = {run.setting["protocol"]: run for run in captured_runs(folder, styles(folder), network, 1)}
    for run in runs.values():
        sent, arrived = (
            next(row["packets"] for row in run.captures if (row["end"], row["direction"]) == (end, "down"))
            for end in ("servers", "client")
        )
        assert sent - arrived == bool(lost_packet)
        assert run.waits["incomplete_bytes"] == 0
        assert run.waits["content_bytes"] > STYLES * STYLE_BYTES
    return runs


def test_without_a_loss_nothing_is_blocked(tmp_path: Path) -> None:
    runs = styles_with_loss(tmp_path, None)
    for waits in (run.waits for run in runs.values()):
        assert waits["gaps"] == waits["stream_ms"] == waits["others_ms"] == waits["front_ms"] == 0
    quic = runs["quic"].waits
    assert quic["record_ms"] == quic["sequence_front_ms"] == 0


def test_one_loss_blocks_other_streams_for_a_round_trip_over_tcp_and_not_over_quic(tmp_path: Path) -> None:
    for number in LOST_PACKETS:
        runs = styles_with_loss(tmp_path / f"{number}", number)
        tcp, quic = (runs[name].waits for name in PROTOCOLS)
        if tcp["gaps"] and quic["sequence_gaps"]:
            break
    else:
        pytest.fail("none of the lost packets carried content over both transports")
    assert quic["others_ms"] == quic["front_ms"] == quic["record_ms"] == 0
    # Two more packets reveal the loss. The data after it wait for its repair, which takes a round trip.
    longest_ms = RTT_MS + REORDERING_MS + BUSY_MS
    assert tcp["gaps"] == 1
    assert RTT_MS <= tcp["front_longest_ms"] <= tcp["front_ms"] <= longest_ms
    assert 0 < tcp["others_longest_ms"] <= tcp["others_ms"] <= longest_ms
    assert tcp["others_bytes"] > STYLE_BYTES
    # A QUIC packet may have parts of streams that continue in the next one.
    assert quic["gaps"] <= 2
    assert quic["stream_ms"] <= longest_ms
    assert quic["stream_bytes"] <= 2 * STYLE_BYTES
    # In a single sequence, the same packets would have blocked other streams as TCP's did.
    assert quic["sequence_gaps"] == 1
    assert RTT_MS <= quic["sequence_front_longest_ms"] <= quic["sequence_front_ms"] <= longest_ms
    assert quic["sequence_front_bytes"] > STYLE_BYTES
