"""The readings of a film: its start, and the times at which the page changed."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.films import (
    BEGAN_US,
    HEIGHT,
    ORANGE,
    WHITE,
    WIDTH,
    Scene,
    film,
    frame,
    literals,
    navigate,
    page,
    write_log,
)

from base.errors import EyelevelError
from dataset.run_files import FILM_LOG, VISUAL
from films.decoding import last_picture
from films.frames import is_blank, is_orange, unlike
from films.log import HEAD, MOST_CHANGES, RECORD, has_changes, read_log
from films.visual_metrics import visually_complete
from measure.run.evidence import analyse_film


def analysis(folder: Path, scenes: list[Scene]) -> dict[str, Any]:
    """The analysis of a film of these scenes, as it is stored."""
    film(folder, scenes)
    analyse_film(folder)
    document: dict[str, Any] = json.loads((folder / VISUAL).read_text())
    return document


def test_the_times_of_a_film_are_those_it_shows(tmp_path: Path) -> None:
    # Half the page appears after 301 ms, the rest after 603 ms.
    document = analysis(tmp_path, [(frame(ORANGE), 400), (frame(WHITE), 301), (page(0.5), 302), (page(1.0), 1)])
    assert document["start"] == {"orange_ms": 400.5, "blank_ms": 0, "blank_after": True}
    metrics = document["metrics"]
    assert (metrics["fvc"], metrics["lvc"], metrics["vc85"]) == (301, 603, 603)
    # 301 ms of nothing and 302 ms of half the page.
    assert metrics["si"] == pytest.approx(301 + 302 / 2, abs=10)


def test_a_film_that_is_being_made_has_the_changes_that_are_whole(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "log", [frame(ORANGE), frame(WHITE), page(1.0)], [BEGAN_US + 1000 * n for n in range(3)]
    )
    content = path.read_bytes()
    end = len(content) - RECORD.size - len(b'{"missed_pixels": 0, "thinned_out": 0, "drawn_over": 0}')
    for cut, is_whole in ((HEAD.size, False), (end - 1, False), (end, True), (end + 1, True), (len(content), True)):
        assert has_changes(BytesIO(content[:cut]), 3) == is_whole, cut
    assert not has_changes(BytesIO(content), 4)


@pytest.mark.parametrize("late_ms", [-17, 2, 40])
def test_zero_is_navigation_start_and_not_the_end_of_the_orange(tmp_path: Path, late_ms: int) -> None:
    film(tmp_path, [(frame(ORANGE), 400), (frame(WHITE), 300), (page(0.5), 300), (page(1.0), 1)])
    navigate(tmp_path, BEGAN_US + 1000 * (1 + 400 - late_ms))
    analyse_film(tmp_path)
    document = json.loads((tmp_path / VISUAL).read_text())
    assert document["start"]["blank_ms"] == late_ms
    assert document["metrics"]["fvc"] == 300 + late_ms and document["metrics"]["lvc"] == 600 + late_ms
    assert document["metrics"]["progress"].startswith("0=0, ")
    assert document["zero_s"] == pytest.approx((400.5 - late_ms) / 1000)


def test_a_film_whose_page_does_not_say_when_it_was_navigated_to_has_no_metrics(tmp_path: Path) -> None:
    film(tmp_path, [(frame(ORANGE), 400), (frame(WHITE), 300), (page(1.0), 1)])
    (tmp_path / "navigation.json").write_text("{}")
    analyse_film(tmp_path)
    document = json.loads((tmp_path / VISUAL).read_text())
    assert "metrics" not in document and "zero" in document["faults"][0]


def test_a_strip_of_orange_that_stays_is_seen(tmp_path: Path) -> None:
    strip = frame(WHITE)
    strip[-2:] = ORANGE
    document = analysis(tmp_path, [(frame(ORANGE), 160), (strip, 40), (frame(WHITE), 300), (page(1.0), 300)])
    assert document["start"] == {"orange_ms": 160.5, "blank_ms": 0, "blank_after": False}


def test_a_film_without_orange_is_seen(tmp_path: Path) -> None:
    document = analysis(tmp_path, [(frame(WHITE), 300), (page(1.0), 300)])
    assert document["start"] == {"orange_ms": 0, "blank_ms": None, "blank_after": False}


def test_a_blended_last_row_is_still_orange() -> None:
    scaled = frame(ORANGE)
    scaled[-1:] = (224, 110, 29)
    assert is_orange(scaled)
    cut = frame(ORANGE)
    cut[HEIGHT * 9 // 10 :] = WHITE
    assert not is_orange(cut)
    assert not is_blank(scaled)


WHOLE = (frame(ORANGE), 400), (frame(WHITE), 300), (page(1.0), 1)


def with_counts(log: bytes, counts: bytes) -> bytes:
    """A film's log with other counts at its end."""
    end = log.rindex(b"{") - RECORD.size
    *numbers, _ = RECORD.unpack_from(log, end)
    return log[:end] + RECORD.pack(*numbers, len(counts)) + counts


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda log: b"", id="empty"),
        pytest.param(lambda log: b"not a film" * 10, id="another file"),
        pytest.param(lambda log: log[:-10], id="cut off in its counts"),
        pytest.param(lambda log: log[: len(log) // 2], id="cut off in its pixels"),
        pytest.param(lambda log: log[: HEAD.size], id="no change"),
        pytest.param(lambda log: with_counts(log, b"{}"), id="no word on what it lacks"),
        pytest.param(lambda log: with_counts(log, b"[" * 4000), id="counts of brackets"),
        pytest.param(lambda log: log[: HEAD.size + 8] + bytes(8) + log[HEAD.size + 16 :], id="a time before the start"),
        pytest.param(lambda log: log[: HEAD.size + 20] + b"\xff" * 8 + log[HEAD.size + 28 :], id="beyond the screen"),
        pytest.param(
            lambda log: log[: HEAD.size + RECORD.size] + b"\x0f" * 200 + log[HEAD.size + RECORD.size + 200 :],
            id="pixels that cannot be unpacked",
        ),
    ],
)
def test_a_broken_film_is_one_line_with_its_name(tmp_path: Path, broken: Callable[[bytes], bytes]) -> None:
    path = film(tmp_path, WHOLE)
    path.write_bytes(broken(path.read_bytes()))
    analyse_film(tmp_path)
    (fault,) = json.loads((tmp_path / VISUAL).read_text())["faults"]
    assert str(path) in fault and "\n" not in fault


def test_a_log_of_more_changes_than_a_load_has_is_refused_before_pictures_are_made_of_them(tmp_path: Path) -> None:
    path = film(tmp_path, WHOLE)
    log = path.read_bytes()
    begin = HEAD.size + RECORD.size + RECORD.unpack_from(log, HEAD.size)[-1]
    pixel = literals(b"\0\0\0\0")
    tiny = RECORD.pack(BEGAN_US + 1000, BEGAN_US + 1000, 1, 0, 0, 1, 1, len(pixel)) + pixel
    path.write_bytes(log[:begin] + tiny * MOST_CHANGES + log[begin:])
    with pytest.raises(EyelevelError, match=f"more than {MOST_CHANGES} changes"):
        read_log(path)


def test_a_film_too_narrow_for_a_browser_has_no_metrics(tmp_path: Path) -> None:
    document = analysis(tmp_path, [(frame(ORANGE, 400, 20), 300), (frame(WHITE, 400, 20), 300)])
    assert "too narrow" in document["faults"][0]


def test_a_film_of_nothing_but_orange_has_no_metrics(tmp_path: Path) -> None:
    film(tmp_path, [(frame(ORANGE), 300)])
    navigate(tmp_path, BEGAN_US + 1000)
    analyse_film(tmp_path)
    document = json.loads((tmp_path / VISUAL).read_text())
    assert document["start"]["blank_ms"] is None and document["start"]["orange_ms"] >= 500
    assert "shows only orange" in document["faults"][0]


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ("0=0, 66=20, 133=85, 766=100", 133),
        ("0=0, 100=84, 200=100", 200),
        # The page was 90 % complete, but then only 40 %, so the 90 % do not count.
        ("0=0, 100=90, 200=40, 300=86, 400=100", 300),
        ("0=100", 0),
    ],
)
def test_complete_is_reached_for_good(progress: str, expected: int) -> None:
    assert visually_complete(progress, 85) == expected


def test_never_complete_is_an_error() -> None:
    with pytest.raises(ValueError, match="85 %"):
        visually_complete("0=0, 100=80", 85)


def test_the_last_picture_is_the_last_thing_a_film_shows(tmp_path: Path) -> None:
    path = film(tmp_path, [(frame(ORANGE), 400), (frame(WHITE), 300), (page(0.5), 300), (page(1.0), 1)])
    assert (last_picture(path, read_log(path)) == page(1.0)).all()


def test_a_picture_that_was_drawn_in_parts_counts_from_its_last_drawing(tmp_path: Path) -> None:
    path = write_log(tmp_path / FILM_LOG, [frame(ORANGE), frame(WHITE)], [BEGAN_US + 1, BEGAN_US + 9000])
    content = bytearray(path.read_bytes())
    second = HEAD.size + RECORD.size + RECORD.unpack_from(content, HEAD.size)[-1]
    first_us, last_us, _, *rest = RECORD.unpack_from(content, second)
    RECORD.pack_into(content, second, first_us - 4000, last_us, 3, *rest)
    path.write_bytes(content)
    log = read_log(path)
    assert log.changes[1].first_us == BEGAN_US + 5000 and log.times_us[1] == BEGAN_US + 9000
    assert [log.change_at(BEGAN_US + at_us) for at_us in (0, 8999, 9000, 10**9)] == [0, 0, 1, 1]


def test_pictures_are_as_unlike_as_the_share_in_which_a_person_sees_a_difference() -> None:
    one, other = frame(WHITE), frame(WHITE)
    other[80:160, 80:160] = (200, 255, 255)
    assert unlike(one, one) == 0
    assert unlike(one, other) == pytest.approx(80 * 80 / (WIDTH * HEIGHT))
    assert unlike(one, one[:, :-1]) == 1
    # These differences are invisible: a faint one everywhere, and single pixels, as when an edge is smoothed
    # differently.
    assert unlike(one, np.full_like(one, 250)) == 0
    other = frame(WHITE)
    other[::8, ::8] = (0, 0, 0)
    assert unlike(one, other) == 0
