"""A site keeps the data of a HAR about its own load as a live load."""

import json
from pathlib import Path
from typing import Any

import pytest

from measure.live import read_live
from record.formats import read_recording
from record.live import LiveLoad, http_version
from record.site import write_site


def archive(path: Path, timings: Any) -> Path:
    request = {"method": "GET", "url": "https://a.example/", "headers": []}
    content = {"text": "<!doctype html><p>x", "size": 19}
    headers = [{"name": "content-type", "value": "text/html"}]
    response = {"status": 200, "statusText": "OK", "httpVersion": "HTTP/2.0", "headers": headers, "content": content}
    entry = {"pageref": "p", "startedDateTime": "2026-01-01T00:00:00Z", "request": request, "response": response}
    page = {"id": "p", "title": "https://a.example/", "startedDateTime": "2026-01-01T00:00:00Z", "pageTimings": timings}
    browser = {"name": "Firefox", "version": "1"}
    path.write_text(json.dumps({"log": {"version": "1.2", "browser": browser, "pages": [page], "entries": [entry]}}))
    return path


def test_the_time_of_the_load_event_is_one_live_load(tmp_path: Path) -> None:
    site = write_site(read_recording(archive(tmp_path / "a.har", {"onLoad": 1234.5})), tmp_path / "a")
    live = read_live(site)
    assert live and live.loads == (LiveLoad({"plt": 1234.5}, {"h2": 1}),)
    assert (live.browser, live.network) == ("Firefox 1", None)


def test_a_browser_s_name_that_has_no_end_is_cut_off(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.har", {"onLoad": 1234.5})
    file.write_text(file.read_text().replace("Firefox", 100_000 * "x"))
    live = read_live(write_site(read_recording(file), tmp_path / "a"))
    assert live and len(live.browser) < 100


@pytest.mark.parametrize(
    "timings", [{}, {"onLoad": -1}, {"onLoad": "soon"}, {"onLoad": None}, {"onLoad": True}, [], None]
)
def test_an_archive_without_that_time_has_none(timings: Any, tmp_path: Path) -> None:
    site = write_site(read_recording(archive(tmp_path / "a.har", timings)), tmp_path / "a")
    assert read_live(site) is None


def test_versions_of_http_have_one_name() -> None:
    names = ("h2", "HTTP/2", "http/2.0", "h3", "HTTP/3", "h3-29", "http/2+quic/46", "HTTP/1.1", "http/1.0")
    assert [http_version(name) for name in names] == ["h2"] * 3 + ["h3"] * 4 + ["http/1.1"] * 2
