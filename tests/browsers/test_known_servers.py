"""The servers that a fresh profile of Chromium knows. `measure.validate` checks that the browser uses them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from base.errors import EyelevelError
from browsers.chromium.known_servers import FILE, write_known_servers

# The key that Chromium 150 wrote for a page of https://held.example.
KEY_OF_HELD_EXAMPLE = "GAAAABQAAABodHRwczovL2hlbGQuZXhhbXBsZQ=="


def servers(profile: Path, url: str, authorities: tuple[str, ...], http_version: str) -> list[dict[str, Any]]:
    write_known_servers(profile, url, authorities, http_version)
    properties = json.loads((profile / FILE).read_text())["net"]["http_server_properties"]
    assert properties["version"] == 5
    entries: list[dict[str, Any]] = properties["servers"]
    return entries


def test_a_site_is_written_as_chromium_writes_it(tmp_path: Path) -> None:
    known = servers(tmp_path, "https://held.example/", ("cdn.example",), "h3")
    assert [server["anonymization"] for server in known] == [
        [KEY_OF_HELD_EXAMPLE, False, 0],
        [KEY_OF_HELD_EXAMPLE, True, 0],
    ]


def test_every_part_of_the_host_may_be_the_site(tmp_path: Path) -> None:
    known = servers(tmp_path, "https://www.shop.example/a", ("www.shop.example",), "h2")
    assert len({server["anonymization"][0] for server in known}) == 2


@pytest.mark.parametrize(
    ("authority", "http_version", "expected"),
    [("a.example", "h2", None), ("a.example", "h3", 443), ("a.example:8443", "h3", 8443)],
)
def test_a_server_speaks_the_version_that_is_used(
    tmp_path: Path, authority: str, http_version: str, expected: int | None
) -> None:
    for server in servers(tmp_path, "https://a.example/", (authority,), http_version):
        assert server["server"] == f"https://{authority}"
        services = server.get("alternative_service", [])
        assert server.get("supports_spdy", False) == (expected is None)
        assert [(service["port"], service["protocol_str"]) for service in services] == (
            [] if expected is None else [(expected, "quic")]
        )


def test_more_entries_than_chromium_keeps_are_those_of_the_registrable_domain(tmp_path: Path) -> None:
    authorities = tuple(f"cdn{n}.example" for n in range(250))
    known = servers(tmp_path, "https://www.shop.co.uk/", authorities, "h3")
    assert len(known) == 500
    (site,) = {base64.b64decode(server["anonymization"][0])[8:].rstrip(b"\0") for server in known}
    assert site == b"https://shop.co.uk"
    assert {server["server"] for server in known} == {f"https://{authority}" for authority in authorities}


def test_more_servers_than_chromium_can_know_are_refused(tmp_path: Path) -> None:
    authorities = tuple(f"cdn{n}.example" for n in range(251))
    with pytest.raises(EyelevelError, match="251 servers, but Chromium can know only 250 in advance"):
        write_known_servers(tmp_path, "https://www.shop.co.uk/", authorities, "h3")
    assert not (tmp_path / FILE).exists()


def test_a_browser_that_knows_no_server_has_an_empty_list(tmp_path: Path) -> None:
    assert servers(tmp_path, "https://a.example/", (), "h3") == []
