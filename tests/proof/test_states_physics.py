"""The records of a lossless bulk download agree with each other and with the network: window, rate and RTT."""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from base.qlog import QLOG_ENDING, STATE, Qlog, read_qlog
from dataset.table import Run
from measure.campaign.single_load import measure_one
from measure.run.setting import Loading, Setting
from record.generated import generated_exchange
from record.site import Recording, Site, write_site
from studies.states.measure import StatesMethod
from studies.states.series import delivered_bytes, series
from tuning import protocols
from tuning.networks import Network
from tuning.protocols import Protocol

# A queue that no window fills during the download, so that nothing is lost.
NETWORK = Network("known", min_rtt_ms=80, up_mbps=10, down_mbps=10, queue_ms=1000)
SIZE_BYTES = 8_000_000
# The share of a packet on the wire that counts in the window: TCP's payload of a full segment; for QUIC the whole UDP
# payload.
PAYLOAD_SHARE = {"tcp": 1448 / 1500, "quic": 1250 / 1278}
# The part of the download that is examined: after its start and BBR's drain.
PART = (0.4, 0.97)
# If nothing was acknowledged for longer, the machine had no time for the replay, and the load is repeated.
QUIET_S, TRIES = 0.1, 4
TOLERANCE = 0.1
BBR_GAIN = 2.0

# A pause of QUIET_S spoils a load; next to other tests, it would be repeated again and again.
pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    page = b'<!doctype html><title>bulk</title><link rel="stylesheet" href="/bulk">'
    # A style sheet delays the load event and is read to its end, whatever its content.
    bulk = b"/*" + random.Random(1).randbytes(SIZE_BYTES).replace(b"*", b"+") + b"*/"
    exchanges = (
        generated_exchange("https://bulk.example/", "text/html", page, "192.0.2.1"),
        generated_exchange("https://bulk.example/bulk", "text/css", bulk, "192.0.2.1"),
    )
    return write_site(
        Recording("https://bulk.example/", exchanges, {"name": "test"}), tmp_path_factory.mktemp("s") / "bulk"
    )


@dataclass(frozen=True)
class Means:
    """Means over the part of a download: rate (bytes/s), RTTs (s), sizes (bytes), the controller's own estimate of the
    rate; and the longest time (s) without a report."""

    rate: float
    rtt_s: float
    min_rtt_s: float
    in_flight: float
    window: float
    estimate: float
    longest_s: float


def means(log: Qlog) -> Means:
    """Means over time; for the RTT, over delivered data, as in Little's law (Operations Research 9, 1961)."""
    table = series(log, log.began_s)
    whole = table["delivered"].max()
    part = table[table["delivered"].between(PART[0] * whole, PART[1] * whole)]
    assert part["lost"].min() == part["lost"].max(), "packets were lost"
    seconds, delivered = np.diff(part["time_s"]), np.diff(part["delivered"])

    def over_time(column: str) -> float:
        return float((part[column].to_numpy()[:-1] * seconds).sum() / seconds.sum())

    return Means(
        rate=delivered.sum() / seconds.sum(),
        rtt_s=float((part["smoothed_rtt_ms"].to_numpy()[1:] * delivered).sum() / delivered.sum()) / 1e3,
        min_rtt_s=part["min_rtt_ms"].min() / 1e3,
        in_flight=over_time("in_flight"),
        window=over_time("window"),
        estimate=over_time("bandwidth_bps") / 8,
        longest_s=seconds.max(),
    )


def download(site: Site, protocol: Protocol, folder: Path) -> tuple[Qlog, Means]:
    """The log and the means of a bulk download, in a load during which the machine was quiet."""
    for number in range(TRIES):
        tried = folder / str(number)
        tried.mkdir()
        run = Run(site.name, NETWORK.name, protocol.name, number)
        row = measure_one(
            run, Setting(site, NETWORK, protocol, Loading(filmed=False), seed=1), StatesMethod(), tried, 0
        )
        assert row.valid, row.reason
        log = max((read_qlog(path) for path in (tried / row.folder).glob(f"*{QLOG_ENDING}")), key=delivered_bytes)
        if (values := means(log)).longest_s < QUIET_S:
            return log, values
    pytest.fail("the machine is too busy")


@pytest.mark.parametrize("name", ["tcp+", "tcp+bbr", "quic", "quic+bbr"])
def test_window_is_rate_times_rtt(name: str, site: Site, tmp_path: Path) -> None:
    protocol = protocols.load()[name]
    log, values = download(site, protocol, tmp_path)
    assert log.parameters["congestion_control"] == protocol.congestion_control
    assert SIZE_BYTES < delivered_bytes(log) < 1.05 * SIZE_BYTES

    product, least_product = values.rate * values.rtt_s, values.rate * values.min_rtt_s
    print(
        f"{name}: {values.rate * 8 / 1e6:.2f} Mbit/s, RTT {values.rtt_s:.4f} s, min {values.min_rtt_s:.4f} s; "
        f"in flight {values.in_flight / product:.3f} of rate x RTT, window {values.window / product:.3f} of it and "
        f"{values.window / least_product:.3f} of rate x min RTT; "
        f"estimate {values.estimate / values.rate:.3f} of the rate"
    )
    assert NETWORK.down_mbps
    link = NETWORK.down_mbps * 1e6 / 8 * PAYLOAD_SHARE[protocol.transport]
    assert values.rate < 1.03 * link
    if values.window > 1.25 * link * values.min_rtt_s:  # otherwise slow start ended too early
        assert values.rate == pytest.approx(link, rel=0.05)
    assert values.min_rtt_s * 1e3 == pytest.approx(NETWORK.min_rtt_ms, rel=0.02)
    assert values.in_flight == pytest.approx(product, rel=TOLERANCE)
    states = [event.data["new"] for event in log.named(STATE)]
    if protocol.congestion_control == "cubic":
        # Cubic sends as much as its window allows.
        assert values.window == pytest.approx(product, rel=TOLERANCE)
        assert states.index("slow_start") < states.index("congestion_avoidance")
    else:
        # BBR paces at its estimate of the link's rate. Its window is only a limit: twice the product, and an allowance
        # for aggregated acknowledgements.
        assert values.estimate == pytest.approx(values.rate, rel=TOLERANCE)
        assert BBR_GAIN * (1 - TOLERANCE) < values.window / least_product < 1.5 * BBR_GAIN
        assert states.index("startup") < states.index("drain") < states.index("probe_bw")
    assert "rto" not in states
    assert "pto" not in states
