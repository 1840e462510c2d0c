"""The connections that a recorder saw are stored unchanged in a site, from each format that contains them."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from base.errors import EyelevelError
from record.connections import Connection, recorded_rtts
from record.formats import har
from record.http1 import Response, parse_response
from record.layout import INDEX
from record.site import Exchange, Recording, Site, write_site

PAGE = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"<p>A"), "192.0.2.1", ttfb_ms=50.0)
FULL = Connection("192.0.2.1", "a.example", 20.25, 41.5, "h2", (1200, 980), ("a.example", "*.a.example"))


def written(folder: Path, *connections: Connection) -> Site:
    return write_site(Recording(PAGE.url, (PAGE,), {"tool": "test"}, connections=connections), folder)


def test_a_site_keeps_the_connections_of_its_servers(tmp_path: Path) -> None:
    site = written(tmp_path / "a", FULL, replace(FULL, server="192.0.2.9"))
    assert site.connections == (replace(FULL, server="198.18.0.1"),)
    assert site.recorded_connections() == (FULL,)


def test_a_site_without_is_as_it_always_was(tmp_path: Path) -> None:
    assert "connections" not in json.loads((written(tmp_path / "a").folder / INDEX).read_text())


@pytest.mark.parametrize(
    "change",
    [
        {"server": "198.18.0.2"},
        {"host": "A.example"},
        {"handshake_ms": -1},
        {"handshake_ms": True},
        {"tls_ms": 1e9},
        {"alpn": "h2\n"},
        {"certificates": [0]},
        {"certificates": 5},
        {"names": ["a b"]},
        {"names": [7]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_connection_that_no_import_writes_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = written(tmp_path / "a", FULL).folder / INDEX
    index = json.loads(path.read_text())
    index["connections"][0] |= change
    path.write_text(json.dumps(index))
    with pytest.raises(EyelevelError, match=r"site\.json is broken .connection 0"):
        Site.load(path.parent)


def test_the_shortest_handshake_is_a_server_s_round_trip() -> None:
    others = [replace(FULL, handshake_ms=ms) for ms in (19.5, None, 30.0)]
    ((server, rtt),) = recorded_rtts([FULL, *others, replace(FULL, server="192.0.2.2", handshake_ms=None)]).items()
    assert (server, rtt.rtt_ms, rtt.count) == ("192.0.2.1", 19.5, 3)


@pytest.mark.parametrize(("handshake_ms", "wait"), [(20.25, "29.75"), (80.0, "0"), (None, "50")])
def test_what_a_server_took_to_answer_has_no_round_trip_in_it(
    tmp_path: Path, handshake_ms: float | None, wait: str
) -> None:
    site = written(tmp_path / "a", replace(FULL, handshake_ms=handshake_ms))
    stored = parse_response((site.folder / site.exchanges[0].file).read_bytes())
    assert (stored.header("x-original-wait-ms"), site.exchanges[0].ttfb_ms) == (wait, 50.0)


def archive(creator: str = "WebInspector", version: str = "http/2.0", **timings: float) -> dict[str, Any]:
    """A HAR with one entry."""
    entry = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "request": {"method": "GET", "url": "https://a.example/", "headers": []},
        "response": {
            "status": 200,
            "httpVersion": version,
            "headers": [{"name": "content-type", "value": "text/html"}],
            "content": {"text": "<p>A", "size": 4},
        },
        "timings": {"send": 0, "wait": 30, "receive": 0, **timings},
        "serverIPAddress": "192.0.2.1",
    }
    return {"log": {"creator": {"name": creator}, "entries": [entry]}}


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        (archive(connect=70, ssl=45), (25.0, 45.0, "h2")),
        (archive(creator="Firefox", connect=25, ssl=45), (25.0, 45.0, "h2")),
        (archive(version="HTTP/1.1", connect=25, ssl=-1), (25.0, None, None)),
        (archive(version="h3", connect=26, ssl=26), (26.0, None, "h3")),
        (archive(version="http/2+quic/46", connect=26, ssl=26), (26.0, None, "h3")),
        # TCP had been opened earlier, for a request that the browser expected.
        (archive(connect=45.01, ssl=45), (None, 45.0, "h2")),
        (archive(connect=-1, ssl=-1), None),
        (archive(connect=0, ssl=-1), None),
        (archive(), None),
        (archive(connect=10**400), None),
    ],
)
def test_a_har_tells_how_long_connections_took(tmp_path: Path, document: Any, seen: tuple[Any, ...] | None) -> None:
    path = tmp_path / "a.har"
    path.write_text(json.dumps(document))
    site = write_site(har.read(path), tmp_path / "a")
    assert [(one.handshake_ms, one.tls_ms, one.alpn) for one in site.connections] == ([seen] if seen else [])
    har.write(site, tmp_path / "again.har")
    again = write_site(har.read(tmp_path / "again.har"), tmp_path / "again")
    known = [one for one in site.connections if one.handshake_ms is not None]
    assert [asdict(one) for one in again.connections] == [asdict(one) for one in known]


def test_a_host_s_name_with_the_dot_of_the_root_is_the_host_without_it(tmp_path: Path) -> None:
    """Recorders may use the host of the URL, or that sent in TLS, which lacks the dot."""
    entry = archive(connect=25, ssl=45)
    entry["log"]["entries"][0]["request"]["url"] = "https://a.example./"
    (tmp_path / "a.har").write_text(json.dumps(entry))
    site = write_site(har.read(tmp_path / "a.har"), tmp_path / "a")
    assert [one.host for one in site.connections] == ["a.example"]
    har.write(site, tmp_path / "again.har")
    assert write_site(har.read(tmp_path / "again.har"), tmp_path / "again").connections == site.connections
