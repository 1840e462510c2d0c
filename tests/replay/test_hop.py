"""A splitting hop terminates TCP in the middle, for every byte; a path whose hop does not is detected."""

from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import EyelevelError
from browsers.registry import browser_named
from dataset.checks import within
from eyelevel.requirements import require_networks
from measure.campaign.campaign import Campaign
from measure.run.browser import refusal
from measure.validate.network.hop import HopMeasurement, judge_hop, measure_hop
from measure.validate.network.path import checks_of_half
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from replay import ReplaySpec, run
from replay.hops import edge, split, tunnel
from replay.hops.namespace import TABLE
from replay.hops.registry import proxy_of, require_served_on
from replay.shells.registry import shells_named
from replay.spec import PROXY_HOST, PROXY_PORT
from studies.packets.measure import PacketsMethod
from tuning import networks, protocols
from tuning.hops import NONE, Hop
from tuning.networks import Network

FAR = Hop(split.HOP.name, min_rtt_ms=100, up_mbps=50, down_mbps=50, queue_ms=50)
CONTROL = Network("hop", 100, up_mbps=10, down_mbps=20, queue_ms=50, hop=replace(FAR, kind=NONE))
PROXIED = replace(CONTROL, hop=FAR)
EDGE = replace(CONTROL, hop=replace(FAR, kind=edge.HOP.name))
TUNNEL = replace(CONTROL, hop=replace(FAR, kind=tunnel.HOP.name, congestion_control="reno", initial_window_packets=32))


def failures(network: Network, seen: HopMeasurement) -> list[str]:
    # The delays are long, since other tests run at the same time.
    checks = judge_hop(network, seen, tolerance_ms=40.0, handshake_ms=300.0)
    return [check.name for check in checks if not check.passed]


@pytest.mark.needs_namespaces
@pytest.mark.needs_haproxy
@pytest.mark.timing
def test_connections_end_at_the_hop_and_are_told_from_others(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    split, control = measure_hop(PROXIED, site), measure_hop(CONTROL, site)
    assert failures(PROXIED, split) == [], split
    assert failures(CONTROL, control) == [], control
    assert failures(CONTROL, split) == ["hop", "hop, least time to connect"]
    assert failures(replace(PROXIED, hop=replace(FAR, min_rtt_ms=300)), split) == [
        "hop, least echo",
        "hop, least time until TLS stands",
        "hop, least time to a response",
    ]
    halves = replace(PROXIED, min_rtt_ms=40, hop=replace(FAR, min_rtt_ms=160))
    assert failures(halves, split) == ["hop, least time to connect"]


@pytest.mark.needs_namespaces
@pytest.mark.needs_caddy
@pytest.mark.timing
def test_an_edge_answers_in_place_of_the_servers_with_what_they_have(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    seen = measure_hop(EDGE, site)
    assert failures(EDGE, seen) == [], seen
    wrong = ["hop", "hop, least time to connect", "hop, least time until TLS stands"]
    assert failures(CONTROL, seen) == wrong


@pytest.mark.needs_namespaces
@pytest.mark.needs_quinn
@pytest.mark.timing
def test_a_proxy_of_connect_udp_leads_quic_to_the_servers_and_is_told_from_others(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    seen = measure_hop(TUNNEL, site)
    assert failures(TUNNEL, seen) == [], seen
    account = seen.account
    assert (account["congestion_control"], account["initial_window_bytes"]) == ("reno", 32 * 1460)
    assert (account["tcp_requests"], account["unknown_requests"], account["datagrams_too_long"]) == (0, 0, 0)
    assert min(account["datagrams_to_servers"], account["datagrams_to_browser"]) >= 3 * account["connections"]
    elsewhere = replace(TUNNEL, min_rtt_ms=500, hop=replace(FAR, kind=tunnel.HOP.name, min_rtt_ms=500))
    assert failures(elsewhere, seen) == [
        "hop, least time to connect",
        "hop, least time to a tunnel",
        "hop, least time until TLS stands in it",
        "hop, least time to a response through it",
    ]


@pytest.mark.needs_namespaces
@pytest.mark.needs_quinn
def test_quic_beside_the_proxy_makes_the_replay_fail(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    (address,) = next(iter(site.addresses.values()))[:1]
    spec = ReplaySpec(site.folder, TUNNEL, protocols.load()["quic"])
    send = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'?', ({address!r}, 443))"
    with pytest.raises(EyelevelError, match=r"1 packets of TCP or UDP bypassed the hop"):
        # The echo returns after the datagram has arrived.
        run(spec, ["sh", "-c", f'python3 -c "{send}"; ping -q -c 1 {address}'])


@pytest.mark.needs_namespaces
@pytest.mark.needs_haproxy
def test_a_byte_beside_the_hop_makes_the_replay_fail(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    (address,) = next(iter(site.addresses.values()))[:1]
    spec = ReplaySpec(site.folder, PROXIED, protocols.load()["tcp"])
    # Delete the rule that leads TCP into the hop, in its namespace, which contains one of the shells' processes.
    delete = f"ip rule del ipproto tcp lookup {TABLE} 2>/dev/null"
    delete = f"for process in $(pgrep -x mm-net); do nsenter --net=/proc/$process/ns/net {delete}; done"
    with pytest.raises(EyelevelError, match=r"packets of TCP bypassed the hop"):
        run(spec, ["sh", "-c", f"{delete}; curl --silent --insecure https://{address}/; true"])


def test_a_half_that_fails_is_a_failure_of_its_network() -> None:
    near, far = PROXIED.halves
    checks = [within(half.name, "rate", 20, 10, 1, "Mbit/s") for half in (near, far)]
    said = checks_of_half(PROXIED, checks)
    assert [(check.subject, check.name) for check in said] == [("hop", "near, rate"), ("hop", "far, rate")]
    assert checks_of_half(CONTROL.halves[0], checks[:1]) == checks[:1]


def test_a_hop_that_cannot_be_is_refused_in_a_line(tmp_path: Path) -> None:
    file, known = tmp_path / "networks.toml", protocols.load()
    for text, message in (
        ('{kind = "cache", min_rtt_ms = 1}', "x: hop.kind must be one of terminate, none, split, masque, not 'cache'"),
        ('{kind = "split", min_rtt_ms = -1}', "hop: min_rtt_ms must not be negative"),
        ('{kind = "split", min_rtt_ms = 1, down_mbps = 5}', "hop: "),
        (
            '{kind = "none", min_rtt_ms = 1, congestion_control = "bbr"}',
            "are only for a hop that sends its own packets",
        ),
        ('{kind = "split", min_rtt_ms = 1, congestion_control = "vegas"}', "hop.congestion_control of split must be"),
        ('{kind = "masque", min_rtt_ms = 1, congestion_control = "bbr"}', "hop.congestion_control of masque must be"),
        ('{kind = "masque", min_rtt_ms = 1, initial_window_packets = 1}', "must be at least 2"),
        ('{kind = "masque", min_rtt_ms = 1, initial_window_packets = 10001}', "of masque must be at most 10000"),
    ):
        file.write_text(f"[x]\nmin_rtt_ms = 10\nhop = {text}\n")
        with pytest.raises(EyelevelError, match=message):
            require_served_on(networks.load(file)["x"], known["tcp"])
    assert "no place for a hop" in (shells_named("mahimahi").refusal(PROXIED) or "")


def test_a_proxy_of_connect_udp_is_refused_where_no_browser_or_protocol_can_use_it(tmp_path: Path) -> None:
    known, site = protocols.load(), write_validation_sites(tmp_path)[WINDOW_PAGE]
    with pytest.raises(EyelevelError, match="measured with QUIC alone"):
        require_served_on(TUNNEL, known["tcp"])
    require_served_on(TUNNEL, known["quic"])
    assert (proxy_of(TUNNEL), proxy_of(EDGE), proxy_of(CONTROL)) == ((PROXY_HOST, PROXY_PORT), None, None)
    chromium, firefox = map(browser_named, ("chromium", "firefox"))
    assert "firefox can" in str(refusal(chromium, known["quic"], site, proxy=proxy_of(TUNNEL)))
    assert refusal(chromium, known["quic"], site, proxy=proxy_of(CONTROL)) is None
    assert refusal(firefox, known["quic"], site, proxy=proxy_of(TUNNEL)) is None


def test_a_study_of_packets_has_no_proxy_of_connect_udp(tmp_path: Path) -> None:
    quic = {"quic": protocols.load()["quic"]}
    campaign = Campaign(tmp_path, {}, {"hop": TUNNEL}, quic, runs=1, seed=1)
    require_networks(campaign)
    require_networks(replace(campaign, networks={"hop": CONTROL}, method=PacketsMethod()))
    with pytest.raises(EyelevelError, match="only 'make campaign' and 'make grid' support"):
        require_networks(replace(campaign, method=PacketsMethod()))


def test_halves_share_the_path() -> None:
    near, far = PROXIED.halves
    assert (near.min_rtt_ms, far.min_rtt_ms, PROXIED.path_rtt_ms) == (100, 100, 200)
    assert (near.down_mbps, far.down_mbps, near.hop) == (20, 50, None)
    lossy = replace(PROXIED, loss=0.02, hop=replace(FAR, loss=0.02))
    assert lossy.tcp_rate_bps() < replace(PROXIED, loss=0.02).tcp_rate_bps() < PROXIED.tcp_rate_bps()
