"""Servers use the protocols, certificates and think times of the recording, over TCP and QUIC."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from base.places import PROJECT
from record.connections import Connection
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay import ReplaySpec, run
from tuning import protocols
from tuning.hops import Hop
from tuning.networks import Network

pytestmark = pytest.mark.needs_namespaces

FAST = Network("fast", min_rtt_ms=2)
OLD, NEW = "https://old.example/", "https://www.example/"
CHAIN = (2000, 1500, 1300)
FETCH = PROJECT / "tests" / "clients" / "fetch.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A modern server, and one that only spoke HTTP/1.1; both sent long chains."""
    page = Exchange("GET", NEW, Response(200, "OK", (), b"<p>New"), "192.0.2.1")
    connections = (
        Connection("192.0.2.1", "www.example", 20.0, 20.0, "h2", CHAIN, ("www.example", "example")),
        Connection("192.0.2.2", "old.example", 50.0, 100.0, "http/1.1", CHAIN, ("old.example",)),
    )
    exchanges = (page, replace(page, url=OLD, recorded_ip="192.0.2.2"))
    recording = Recording(NEW, exchanges, {"tool": "test"}, connections=connections)
    return write_site(recording, tmp_path_factory.mktemp("sites") / "old")


def test_servers_speak_http1_alone_where_they_were_recorded_to(site: Site, tmp_path: Path) -> None:
    spec = ReplaySpec(site.folder, FAST, protocols.load()["tcp"], recorded_alpn=True)
    with (tmp_path / "versions").open("w+b") as output:
        curl = ["curl", "-sS", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{http_version} %{http_code}\n", NEW, OLD]
        outcome = run(spec, curl, stdout=output.fileno())
    assert (tmp_path / "versions").read_text() == "2 200\n1.1 200\n"
    assert outcome.evidence["http1_servers"] == ["198.18.0.2"]


@pytest.mark.needs_caddy
def test_an_edge_asks_servers_by_http2_whatever_they_were_recorded_to_speak(site: Site, tmp_path: Path) -> None:
    edge = replace(FAST, up_mbps=10, down_mbps=10, queue_ms=100, hop=Hop("terminate", min_rtt_ms=2))
    spec = ReplaySpec(site.folder, edge, protocols.load()["caddy-h3"], recorded_alpn=True)
    requests, answers = tmp_path / "requests.json", tmp_path / "answers.json"
    requests.write_text(json.dumps([{"method": "GET", "url": url} for url in (NEW, OLD)]))
    with answers.open("wb") as file:
        outcome = run(spec, [sys.executable, FETCH, "h3", requests], stdout=file.fileno())
    assert [answer["status"] for answer in json.loads(answers.read_text())] == [200, 200]
    assert outcome.evidence["http1_servers"] == []


@pytest.mark.parametrize(("protocol", "version"), [("tcp", "h2"), ("quic", "h3")])
def test_servers_send_as_long_chains_as_they_were_recorded_to(
    site: Site, protocol: str, version: str, tmp_path: Path
) -> None:
    spec = ReplaySpec(site.folder, FAST, protocols.load()[protocol], recorded_certificates=True)
    requests, answers = tmp_path / "requests.json", tmp_path / "answers.json"
    requests.write_text(json.dumps([{"method": "GET", "url": url} for url in (NEW, OLD)]))
    with answers.open("wb") as file:
        outcome = run(spec, [sys.executable, FETCH, version, requests], stdout=file.fileno())
    assert [answer["status"] for answer in json.loads(answers.read_text())] == [200, 200]
    for lengths in outcome.evidence["certificate_bytes"].values():
        assert lengths == {"recorded": sum(CHAIN), "replayed": pytest.approx(sum(CHAIN), abs=12)}
