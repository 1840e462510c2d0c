"""An HTTP archive with several pages: one of them is imported, with only its own requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.recordings import har_entry

from base.errors import EyelevelError
from eyelevel.commands.import_ import import_recording
from measure.live import read_live
from record.formats import read_recording

FIRST, SECOND = "https://a.example/", "https://b.example/news"


def entry(page: str, url: str, second: int, kind: str = "text/html") -> dict[str, Any]:
    whole = har_entry(url, text="<!doctype html><p>", mimeType=kind)
    whole["response"]["headers"] = [{"name": "Content-Type", "value": kind}]
    return {**whole, "pageref": page, "startedDateTime": f"2026-01-01T00:00:{second:02d}Z"}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A small archive of two pages after an empty one. The second has more entries; one of their URLs is among the
    first's, too."""
    pages = [
        {"id": "0", "title": "New tab"},
        {"id": "1", "title": FIRST, "pageTimings": {"onLoad": 100}},
        {"id": "2", "title": "News", "pageTimings": {"onLoad": 200}},
    ]
    entries = [
        entry("0", "https://tab.example/icon", 0, "image/png"),
        entry("1", FIRST, 1),
        entry("1", "https://cdn.example/shared.css", 2, "text/css"),
        entry("2", SECOND, 10),
        entry("2", "https://cdn.example/shared.css", 11, "text/css"),
        *(entry("2", f"https://b.example/{n}.png", 12, "image/png") for n in range(5)),
    ]
    path = tmp_path / "x.har"
    path.write_text(json.dumps({"log": {"pages": pages, "entries": entries}}))
    return path


def test_the_first_page_with_a_document_is_imported_unless_another_is_chosen(archive: Path) -> None:
    recording = read_recording(archive)
    assert [exchange.url for exchange in recording.exchanges] == [FIRST, "https://cdn.example/shared.css"]
    assert len(recording.skipped) == 8
    assert all("belongs to another page of the archive, which --url chooses" in line for line in recording.skipped)


def test_a_page_whose_document_has_no_body_is_not_the_first(archive: Path) -> None:
    document = json.loads(archive.read_text())
    del document["log"]["entries"][1]["response"]["content"]["text"]
    archive.write_text(json.dumps(document))
    assert read_recording(archive).url == SECOND


@pytest.mark.parametrize("url", [SECOND, "http://b.example/news#top", "https://b.example/0.png"])
def test_the_page_that_asked_for_the_url_is_imported(url: str, archive: Path) -> None:
    recording = read_recording(archive, url=url)
    assert recording.url == SECOND and len(recording.exchanges) == 7
    assert {exchange.url for exchange in recording.exchanges}.isdisjoint({FIRST})
    assert recording.live and recording.live.loads[0].metrics == {"plt": 200}


def test_a_page_that_began_with_the_url_is_preferred_to_one_that_asked_for_it(archive: Path) -> None:
    document = json.loads(archive.read_text())
    document["log"]["entries"].append(entry("1", SECOND, 3))
    archive.write_text(json.dumps(document))
    assert len(read_recording(archive, url=SECOND).exchanges) == 7


@pytest.mark.parametrize("url", ["https://c.example/", "no URL"])
def test_a_page_that_is_not_there_is_answered_with_those_that_are(url: str, archive: Path) -> None:
    with pytest.raises(EyelevelError, match=f"--url: {url} was not recorded; .* begin with: .*{FIRST}, {SECOND}$"):
        read_recording(archive, url=url)


def test_an_import_takes_the_chosen_page_with_its_time(archive: Path, tmp_path: Path) -> None:
    live = read_live(site := import_recording(archive, tmp_path / "x", SECOND))
    assert site.url == SECOND and len(site.exchanges) == 7
    assert live and live.loads[0].metrics == {"plt": 200}
