"""The network log that a browser leaves is kept, whether complete or not; a link in its place is not."""

import json
import os
from pathlib import Path

import pytest

from browsers.chromium_browser import BROWSER

CONSTANTS = '{"constants": {"netError": {}, "logEventTypes": {"URL_REQUEST_START_JOB": 1}},\n"events": [\n'


def event(url: str) -> str:
    return json.dumps({"type": 1, "source": {"id": 1}, "params": {"url": url, "method": "GET"}}) + ",\n"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("results", "kept"):
        (tmp_path / name).mkdir()
    return tmp_path / "results", tmp_path / "kept"


def kept_urls(results: Path, kept: Path) -> list[str]:
    BROWSER.keep_network_log(results, kept)
    return [request.url for request in BROWSER.read_requests(kept)]


def test_a_finished_log_is_kept(folders: tuple[Path, Path]) -> None:
    results, kept = folders
    (results / "netlog.json").write_text(CONSTANTS + event("https://a.example/").rstrip(",\n") + "]}\n")
    assert kept_urls(results, kept) == ["https://a.example/"]


def test_the_parts_of_an_unfinished_log_are_kept_in_order(folders: tuple[Path, Path]) -> None:
    """A killed browser has not joined them; it had begun to overwrite its files when all were full."""
    results, kept = folders
    (results / "netlog.json").touch()
    parts = results / "netlog.json.inprogress"
    parts.mkdir()
    (parts / "constants.json").write_text(CONSTANTS)
    for at_s, (number, url) in enumerate(
        [(1, "https://a.example/1"), (2, "https://a.example/2"), (0, "https://a.example/3")]
    ):
        file = parts / f"event_file_{number}.json"
        file.write_text(event(url) + ('{"type": 1, "sou' if number == 0 else ""))
        os.utime(file, (at_s, at_s))
    assert kept_urls(results, kept) == [f"https://a.example/{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize("place", ["netlog.json", "netlog.json.inprogress/constants.json"])
def test_a_link_in_its_place_is_not_followed(folders: tuple[Path, Path], place: str) -> None:
    results, kept = folders
    secret = results.parent / "secret"
    secret.write_text("secret")
    (results / place).parent.mkdir(exist_ok=True)
    (results / place).symlink_to(secret)
    BROWSER.keep_network_log(results, kept)
    assert not list(kept.iterdir())
