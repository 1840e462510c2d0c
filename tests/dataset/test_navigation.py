"""The zero of a load's times: the navigation to the page, or to the first page if that one navigated to further
ones."""

import json
from pathlib import Path

import pytest

from dataset.navigation import Navigation, read_navigation
from dataset.run_files import NAVIGATION


@pytest.mark.parametrize(
    ("begun_ms", "page_ms", "navigation"),
    [
        (1000.6, 1000.3, Navigation(1000.3, 0)),
        (1000.6, 999.9, Navigation(999.9, 0)),
        (1030.6, 1029.9, Navigation(1029.9, 0)),
        (1000.6, 1200.5, Navigation(1000, 200.5)),
    ],
    ids=["the page itself", "a clock that is rounded", "a busy machine", "a page that was led to"],
)
def test_zero_is_the_start_of_the_first_navigation(
    tmp_path: Path, begun_ms: float, page_ms: float, navigation: Navigation
) -> None:
    (tmp_path / NAVIGATION).write_text(json.dumps({"began_ms": 1000, "begun_ms": begun_ms, "page_ms": page_ms}))
    assert read_navigation(tmp_path) == navigation


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"began_ms": null, "begun_ms": 5, "page_ms": 5}'])
def test_where_nobody_could_ask_the_page_nothing_is_known(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / NAVIGATION).write_text(content)
    assert read_navigation(tmp_path) is None
