"""Replays with upstream Mahimahi's shells: their arguments and refusals, their effect, and their end."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from support.processes import descendants

from base.errors import EyelevelError
from base.namespaces import AS_ORDINARY_USER
from base.processes import first_readable
from measure.run.evidence import read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from record.collection import choose_site
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay import ReplayOutcome, ReplaySpec, run
from replay.shells.mahimahi import PACKET_BYTES, SHELLS, constant_trace
from replay.shells.registry import all_shells, require_emulated, shells_named
from tuning import networks, protocols
from tuning.impairments.loss import GilbertElliott
from tuning.impairments.on_off import OnOff
from tuning.impairments.rate import read_trace
from tuning.networks import Network
from tuning.queues import Queue

NETWORKS = networks.load()
PROTOCOLS = protocols.load()
OURS = shells_named("ours")


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which Mahimahi appears to be installed; none of it is run."""
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mahimahi").touch(0o755)
    return folder


@pytest.mark.parametrize("mbps", [0.468, 1.89, 2.8, 5, 10.5, 25, 100, 3.7771])
def test_a_rate_becomes_a_trace_that_is_never_faster_and_at_most_a_packet_and_a_millisecond_behind(mbps: float) -> None:
    trace = list(constant_trace(mbps))
    packet_ms = PACKET_BYTES * 8 / mbps / 1e3
    assert [at_ms for at_ms in trace if at_ms <= 0] == []
    assert all(before <= after for before, after in pairwise(trace))
    # The period ends with the last line, and has the right rate.
    assert len(trace) * PACKET_BYTES * 8 / trace[-1] / 1e3 == pytest.approx(mbps, rel=1e-6)
    for number, at_ms in enumerate(trace, start=1):
        assert -1e-3 <= at_ms - number * packet_ms < 1 + 1e-3


def test_rates_of_the_paper_are_exact() -> None:
    for name in NETWORKS.groups["all"]:
        for mbps in (NETWORKS[name].up_mbps, NETWORKS[name].down_mbps):
            assert mbps
            trace = list(constant_trace(mbps))
            assert Fraction(len(trace) * PACKET_BYTES * 8, trace[-1] * 1000) == Fraction(str(mbps))


def test_a_network_becomes_the_nest_of_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    nested = SHELLS.nested(NETWORKS["da2gc"], 1, tmp_path / "time", tmp_path)
    traces = [str(tmp_path / "up.trace"), str(tmp_path / "down.trace")]
    # 11,700 bytes are 7.8 full packets, with 4 bytes of header each.
    queues = [f"--{way}link-queue{what}" for way in ("up", "down") for what in ("=droptail", "-args=bytes=11731")]
    assert nested.record["commands"] == [
        ["mm-delay", "131"],
        ["mm-link", *queues, "--", *traces],
        ["mm-loss", "uplink", "0.016638418"],
        ["mm-loss", "downlink", "0.016638418"],
    ]
    assert nested.record["conversions"] == [
        f"{way}: 0.468 Mbit/s as a trace of 39 packets in 1000 ms, and a queue of 11731 bytes with headers"
        for way in ("up", "down")
    ]
    assert len(Path(traces[0]).read_text().split()) == 39
    assert SHELLS.nested(Network("n", min_rtt_ms=10), 1, tmp_path / "time", tmp_path).record["commands"] == [
        ["mm-delay", "5"]
    ]


def test_a_trace_is_given_to_it_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch)
    network = NETWORKS["longlook-varying"]
    assert network.down_trace
    nested = SHELLS.nested(network, 1, tmp_path / "time", tmp_path)
    assert (tmp_path / "down.trace").read_bytes().split() == read_trace(Path(network.down_trace))
    assert f"the trace {network.down_trace}" in nested.record["conversions"][1]


LINK = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=4, queue_ms=60)


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (replace(LINK, min_rtt_ms=25), "delay by whole milliseconds each way, and min_rtt_ms = 25 needs 12.5"),
        (replace(LINK, jitter_ms=5), "no jitter"),
        (replace(LINK, loss=0.1, retransmit_ms=50), "no links that repeat what they lose"),
        (replace(LINK, drop_up_packets=(3,)), "no losses of chosen packets"),
        (replace(LINK, drop_down_at_ms=(3.0,)), "no losses at chosen times"),
        (replace(LINK, up_delay_ms=5), "no delays that differ by direction"),
        (replace(LINK, up_queue=Queue("codel")), "no queues but drop-tail ones for queue_ms"),
        (replace(LINK, loss=0.1, burst_packets=4), "no losses in bursts"),
        (replace(LINK, loss=0.19, gilbert_elliott=GilbertElliott(0.1, 0.9)), "no losses in bursts"),
        (replace(LINK, on_off=OnOff(5, 1)), "no place for links that are on and off"),
        (replace(LINK, down_on_off=OnOff(5, 1)), "no place for links that are on and off"),
        (replace(LINK, up_mbps=None), "needs a rate or a trace of both directions"),
        (replace(LINK, up_mbps=1e-4, queue_ms=1e6), "too small for a trace of 60 s"),
    ],
    ids=lambda value: value.split()[-1] if isinstance(value, str) else "",
)
def test_what_it_cannot_do_is_refused_in_a_line_that_names_the_network(network: Network, reason: str) -> None:
    refusal = SHELLS.refusal(network)
    assert refusal
    assert re.fullmatch(r"n: Mahimahi's .*|n: a rate .*", refusal)
    assert reason in refusal
    assert refusal.endswith("; use SHELLS=ours")
    assert OURS.refusal(network) is None


def test_the_paper_s_networks_are_not_refused() -> None:
    assert [SHELLS.refusal(NETWORKS[name]) for name in NETWORKS.groups["all"]] == [None] * 4


def test_what_is_not_installed_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    with pytest.raises(
        EyelevelError, match=r"^the program mahimahi is not installed; run 'make setup SHELLS=mahimahi'"
    ):
        require_emulated("mahimahi", [NETWORKS["lte"]])
    require_emulated("ours", [NETWORKS["lte"]])
    with pytest.raises(EyelevelError, match=r"^there are no shells 'rattan'; there are mahimahi, ours$"):
        require_emulated("rattan", [])
    assert list(all_shells()) == ["mahimahi", "ours"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    url = "https://www.page.example/"
    page = Exchange("GET", url, Response(200, "OK", (("Content-Type", "text/html"),), b"<p>Hello"), "192.0.2.1")
    return write_site(Recording(url, (page,), {"tool": "test"}), tmp_path_factory.mktemp("sites") / "page")


def replay(site: Site, script: str, network: Network, protocol: str = "tcp") -> tuple[ReplayOutcome, str]:
    """Run a shell script as the client inside Mahimahi's shells; return the outcome and its output."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
        assert cat.stdin and cat.stdout
        spec = ReplaySpec(site.folder, network, PROTOCOLS[protocol], shells="mahimahi", seed=5)
        outcome = run(spec, ["bash", "-c", script], stdout=cat.stdin.fileno())
        cat.stdin.close()
        return outcome, cat.stdout.read()


@pytest.mark.needs_namespaces
@pytest.mark.needs_mahimahi
@pytest.mark.timing
def test_a_client_in_it_has_its_delay_its_status_and_names_without_delay(site: Site) -> None:
    script = """
        ping -n -c 5 -i 0.05 www.page.example
        curl -sS -o /dev/null -w 'resolved in %{time_namelookup} s, status %{http_code}\\n' https://www.page.example/
        getent hosts nowhere.example
        exit 7
    """
    outcome, printed = replay(site, script, NETWORKS["lte"])
    times_ms = [float(time) for time in re.findall(r"time=([\d.]+)", printed)]
    assert 72 <= min(times_ms) <= 84, times_ms  # a packet of 4.3 and one of 1.1 ms, plus the machine's delay
    resolved_s, status = re.findall(r"resolved in ([\d.]+) s, status (\d+)", printed)[0]
    assert (float(resolved_s) < 0.03, status, outcome.status) == (True, "200", 7)
    assert outcome.evidence["unknown_names"] == ["nowhere.example"]
    # Mahimahi's random events cannot be repeated, and its shells have no higher priority than other programs.
    assert (outcome.evidence["seed"], outcome.evidence["timekeeping"]) == (None, "ordinary priority")
    assert outcome.evidence["shells"]["name"] == "mahimahi"


@pytest.mark.needs_namespaces
@pytest.mark.needs_mahimahi
def test_servers_and_client_are_tuned_in_it_as_they_are_in_ours(site: Site) -> None:
    def tuned(shells: str) -> tuple[object, ...]:
        evidence = run(ReplaySpec(site.folder, NETWORKS["dsl"], PROTOCOLS["tcp+"], shells=shells), ["true"]).evidence
        metrics = [evidence["server_routes"][0]["metrics"], evidence["client"]["routes"][0]["metrics"]]
        return metrics, evidence["client"]["sysctls"], evidence["server_sysctls"], evidence["queueing_discipline"]

    assert tuned("mahimahi") == tuned("ours")


@pytest.mark.needs_namespaces
@pytest.mark.needs_mahimahi
def test_a_shell_that_falls_ends_the_replay_with_a_reason(site: Site) -> None:
    script = "kill -KILL $(pgrep -o mm-link); sleep 100"
    with pytest.raises(EyelevelError, match="the emulated network failed while the client ran"):
        replay(site, script, NETWORKS["dsl"])


@pytest.mark.needs_namespaces
@pytest.mark.needs_mahimahi
def test_a_network_that_is_refused_is_so_before_anything_is_started(site: Site) -> None:
    with pytest.raises(EyelevelError, match=r"needs 12\.5; use SHELLS=ours"):
        replay(site, "true", replace(LINK, min_rtt_ms=25))


CLIENT = """
import sys
from pathlib import Path
from replay import ReplaySpec, run
from tuning import networks, protocols
spec = ReplaySpec(Path(sys.argv[1]), networks.load()["da2gc"], protocols.load()["tcp"], shells="mahimahi")
run(spec, ["bash", "-c", "echo up; exec sleep 1000"])
"""


@pytest.fixture
def client_process(site: Site, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """A replay whose client prints `up` and then waits for ever; the parameter gives the beginning of its command
    line."""
    command = [*request.param, sys.executable, "-c", CLIENT, str(site.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process
        process.kill()


@pytest.mark.needs_namespaces
@pytest.mark.needs_user_namespaces
@pytest.mark.needs_mahimahi
@pytest.mark.parametrize(
    "client_process", [(), AS_ORDINARY_USER], ids=["as we are", "as an ordinary user"], indirect=True
)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_nothing_outlives_it_however_it_ends(client_process: "subprocess.Popen[str]", how: signal.Signals) -> None:
    assert client_process.stdout
    assert client_process.stdout.readline() == "up\n"
    processes = descendants(client_process.pid)
    names = [name for _, name in processes]
    # A name server in each of the four shells, and ours.
    assert {"mm-delay", "mm-link", "mm-loss"} <= set(names)
    assert names.count("dnsmasq") == 5
    pidfds = [os.pidfd_open(pid) for pid, _ in processes]
    client_process.send_signal(how)
    client_process.wait()
    for pidfd in pidfds:
        assert first_readable(pidfd, timeout_s=120) is not None, "a process outlived its replay"
        os.close(pidfd)


@pytest.mark.needs_namespaces
@pytest.mark.needs_mahimahi
@pytest.mark.needs_quic_server
@pytest.mark.needs_browser
@pytest.mark.loads
@pytest.mark.parametrize("protocol", ["tcp+", "quic"])
def test_a_page_loads_in_it(protocol: str, tmp_path: Path) -> None:
    setting = Setting(
        choose_site("demo-light"), NETWORKS["lte"], PROTOCOLS[protocol], Loading(filmed=False, shells="mahimahi")
    )
    assert load(setting, tmp_path) is None
    evidence = read_evidence(tmp_path, filmed=False)
    assert evidence.failures == ()
    assert set(evidence.har_protocols) == {"h2" if protocol == "tcp+" else "h3"}
    assert (evidence.request_counts.missed, evidence.plt is not None) == (0, True)
