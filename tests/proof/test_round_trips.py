"""Every available recording, exported to every format that can be written, keeps the properties in
docs/contributors/formats.md."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.handing_on import lost_by_handing_on
from support.material import recording_names, recording_path

from record.formats import har, mahimahi, read_recording, writable_formats
from record.formats.mahimahi import HTTPS, _RequestResponse
from record.http1 import NOT_REPLAYED, Response
from record.site import write_site

pytestmark = pytest.mark.needs_corpus

# The Mahimahi recordings whose exchanges all used https, except for redirects to it. In all other recordings, an import
# turns http into https.
SECURE = ("www.yelp.com", "www.apple.com")

# Fields that are not stored, or are generated again: those of connections, lengths, and values of cookies.
CHANGED = NOT_REPLAYED | {"content-length"}


@pytest.mark.parametrize("form", writable_formats())
@pytest.mark.parametrize("source", recording_names())
def test_a_site_handed_on_and_imported_again_is_the_same(source: str, form: str, tmp_path: Path) -> None:
    site = write_site(read_recording(recording_path(source)), tmp_path / "site")
    assert lost_by_handing_on(site, writable_formats()[form], tmp_path) == []


@pytest.mark.parametrize("name", SECURE)
def test_a_mahimahi_recording_comes_out_as_it_went_in(name: str, tmp_path: Path) -> None:
    source = recording_path(f"mahimahi/{name}")
    site = write_site(mahimahi.read(source, keep_cookies=True), tmp_path / "site")
    mahimahi.write(site, tmp_path / "out")
    left_out = {reason.split(":")[0] for reason in site.skipped}
    stored = (saved(file) for file in sorted(source.iterdir()) if file.name not in left_out)
    before = [exchange for exchange in stored if exchange["server"][2] == HTTPS]
    after = [saved(file) for file in sorted((tmp_path / "out").iterdir())]
    assert before == after


def saved(file: Path) -> dict[str, Any]:
    """The content of a save file, in comparable form; of the request only the parts that a site keeps."""
    record = _RequestResponse.FromString(file.read_bytes())
    headers = [(header.key.lower(), header.value.strip()) for header in record.response.header]
    fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    response = Response(0, "", fields, record.response.body).without_chunks()
    method, target, _ = record.request.first_line.split(b" ")
    return {
        "server": (record.ip, record.port, record.scheme),
        "request": (method, re.sub(rb"^https?://[^/]+", b"", target)),
        "host": next(header.value for header in record.request.header if header.key.lower() == b"host"),
        "status": record.response.first_line.split(b" ", 1)[1].strip(),
        "headers": [header for header in headers if header[0].decode() not in CHANGED],
        "body": response.body,
    }


def test_a_har_comes_out_as_it_went_in(tmp_path: Path) -> None:
    source = recording_path("har/http2.github.io.har")
    recording = har.read(source, keep_cookies=True)
    site = write_site(recording, tmp_path / "site")
    har.write(site, tmp_path / "out.har")
    before, after = entries(source), entries(tmp_path / "out.har")
    assert after == [entry for entry in before if entry["text"] or not entry["size"]]
    assert len(before) == len(after) + len(site.skipped)


def entries(archive: Path) -> list[dict[str, Any]]:
    """The entries of an archive, in comparable form; of requests only the parts that a site keeps."""
    listed = sorted(json.loads(archive.read_text())["log"]["entries"], key=lambda entry: str(entry["startedDateTime"]))
    return [entry_told(entry) for entry in listed]


def entry_told(entry: dict[str, Any]) -> dict[str, Any]:
    response, content = entry["response"], entry["response"]["content"]
    # A value with several lines represents several fields.
    headers = [
        (field["name"].lower(), line.strip()) for field in response["headers"] for line in field["value"].split("\n")
    ]
    return {
        "url": entry["request"]["url"].partition("#")[0],
        "method": entry["request"]["method"],
        "status": (response["status"], response["statusText"]),
        "headers": [field for field in headers if field[0] not in CHANGED | {"status"} and field[0][0] != ":"],
        "size": content["size"],
        "text": bool(content.get("text")),
        "wait": round(max(entry["timings"]["wait"], -1), 2),
        "server": entry.get("serverIPAddress"),
    }
