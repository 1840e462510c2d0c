"""Both servers answer every request alike: status, header fields and their order, body bytes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from record.formats import mahimahi
from record.http1 import parse_response
from record.site import Site, write_site
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "mahimahi"
FETCH = Path(__file__).parent / "clients" / "fetch.py"
SITES = ["www.yelp.com", "stackoverflow", "imdb"]  # the last with redirects to relative locations

# As close to no network as the shells get; what is compared here is content, not time.
FAST = Network("fast", up_mbps=1000, down_mbps=1000, min_rtt_ms=0, loss=0, queue_ms=100)

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="replaying needs root"),
    pytest.mark.skipif(not CORPUS.is_dir(), reason="../shared/corpus is not here"),
]


@pytest.mark.parametrize("name", SITES)
def test_every_recorded_exchange_comes_back_alike_and_as_recorded(name: str, tmp_path: Path) -> None:
    site = write_site(mahimahi.read(CORPUS / name), tmp_path / name)
    requests: list[dict[str, Any]] = [{"method": e.method, "url": e.url} for e in site.exchanges]
    preflight = [["origin", "https://x.example"], ["access-control-request-method", "PUT"]]
    requests += [
        {"method": "HEAD", "url": site.url},
        {"method": "GET", "url": f"{site.url}never/recorded?at=all"},
        {"method": "OPTIONS", "url": f"{site.url}never/recorded", "headers": preflight},
    ]
    over_tcp = fetch(site, "tcp", "h2", requests, tmp_path)
    over_quic = fetch(site, "quic", "h3", requests, tmp_path)
    for request, tcp, quic in zip(requests, over_tcp, over_quic, strict=True):
        differing = [pair for pair in zip(tcp["headers"], quic["headers"], strict=False) if pair[0] != pair[1]]
        assert tcp == quic, f"{request}: {differing[:3]}"
    for exchange, answer in zip(site.exchanges, over_tcp, strict=False):
        recorded = parse_response((site.folder / exchange.file).read_bytes())
        assert answer["status"] == recorded.status == exchange.status
        assert answer["length"] == len(recorded.body)
    assert [answer["status"] for answer in over_tcp[-2:]] == [404, 204]


def fetch(
    site: Site, protocol: str, version: str, requests: list[dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """Ask for everything over one protocol, from inside a replay."""
    asked = folder / "requests.json"
    asked.write_text(json.dumps(requests))
    spec = ReplaySpec(site.folder, FAST, protocols.load()[protocol])
    with (folder / f"{protocol}.json").open("wb") as answers:
        outcome = run(spec, [sys.executable, FETCH, version, asked], stdout=answers.fileno())
    assert outcome.status == 0
    got: list[dict[str, Any]] = json.loads((folder / f"{protocol}.json").read_text())
    return got
