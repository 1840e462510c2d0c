"""The readings of a film: its start, and the times at which the page changed."""

from pathlib import Path

import numpy as np
import pytest
from support.films import HEIGHT, ORANGE, RATE, WHITE, WIDTH, film, frame, page

from base.errors import EyelevelError
from films.contents import film_contents
from films.frames import FilmStart, film_start, is_blank, is_orange, last_frame, unlike
from films.visual_metrics import visual_metrics, visually_complete


def test_the_times_of_a_film_are_those_it_shows(tmp_path: Path) -> None:
    # Half the page appears after 300 ms, the rest after 600 ms.
    scenes = [(frame(ORANGE), 12), (frame(WHITE), 9), (page(0.5), 9), (page(1.0), 30)]
    contents = film_contents(film(tmp_path / "film.mp4", scenes))
    assert film_start(contents.times, contents.looks) == FilmStart(stray_frames=0, orange_frames=12, blank_after=True)
    metrics = visual_metrics(contents.times, contents.thumbnails)
    assert metrics.fvc == pytest.approx(300, abs=2)
    assert metrics.lvc == pytest.approx(600, abs=2)
    assert metrics.vc85 == pytest.approx(600, abs=2)
    # 300 ms of nothing and 300 ms of half the page.
    assert metrics.si == pytest.approx(450, abs=15)


def test_a_strip_of_orange_that_stays_is_seen(tmp_path: Path) -> None:
    strip = frame(WHITE)
    strip[-2:] = ORANGE
    contents = film_contents(
        film(tmp_path / "film.mp4", [(frame(ORANGE), 5), (strip, 1), (frame(WHITE), 9), (page(1.0), 9)])
    )
    assert film_start(contents.times, contents.looks) == FilmStart(stray_frames=0, orange_frames=5, blank_after=False)


def test_a_film_without_orange_is_seen(tmp_path: Path) -> None:
    contents = film_contents(film(tmp_path / "film.mp4", [(frame(WHITE), 9), (page(1.0), 9)]))
    assert film_start(contents.times, contents.looks) == FilmStart(stray_frames=18, orange_frames=0, blank_after=False)


def test_a_blended_last_row_is_still_orange() -> None:
    scaled = frame(ORANGE)
    scaled[-1:] = (224, 110, 29)
    assert is_orange(scaled)
    cut = frame(ORANGE)
    cut[HEIGHT * 9 // 10 :] = WHITE
    assert not is_orange(cut)
    assert not is_blank(scaled)


@pytest.mark.parametrize("content", [b"", b"not a film"])
def test_a_broken_film_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(content)
    with pytest.raises(EyelevelError, match=r"film\.mp4 cannot be decoded"):
        film_contents(path)


def test_a_film_too_narrow_for_a_browser_has_no_metrics(tmp_path: Path) -> None:
    contents = film_contents(film(tmp_path / "film.mp4", [(frame(ORANGE, 400, 20), 9), (frame(WHITE, 400, 20), 9)]))
    with pytest.raises(EyelevelError, match="400 by 20 pixels"):
        visual_metrics(contents.times, contents.thumbnails)


def test_a_film_of_nothing_but_orange_has_no_metrics(tmp_path: Path) -> None:
    contents = film_contents(film(tmp_path / "film.mp4", [(frame(ORANGE), 9)]))
    assert film_start(contents.times, contents.looks) == FilmStart(stray_frames=0, orange_frames=9, blank_after=False)
    with pytest.raises(EyelevelError, match="shows only orange"):
        visual_metrics(contents.times, contents.thumbnails)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ("0=0, 66=20, 133=85, 766=100", 133),
        ("0=0, 100=84, 200=100", 200),
        # It fell back, so it was not complete before.
        ("0=0, 100=90, 200=40, 300=86, 400=100", 300),
        ("0=100", 0),
    ],
)
def test_complete_is_reached_for_good(progress: str, expected: int) -> None:
    assert visually_complete(progress, 85) == expected


def test_never_complete_is_an_error() -> None:
    with pytest.raises(ValueError, match="85 %"):
        visually_complete("0=0, 100=80", 85)


@pytest.mark.parametrize("shown_s", [0.1, 3])
def test_the_last_frame_is_the_last_thing_a_film_shows(tmp_path: Path, shown_s: float) -> None:
    scenes = [(frame(ORANGE), 12), (frame(WHITE), 9), (page(0.5), round(shown_s * RATE)), (page(1.0), 1)]
    assert (last_frame(film(tmp_path / "film.mp4", scenes)) == page(1.0)).all()


def test_a_film_that_cannot_be_decoded_has_no_last_frame(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"no film")
    with pytest.raises(EyelevelError, match="cannot be decoded"):
        last_frame(tmp_path / "film.mp4")


def test_pictures_are_as_unlike_as_the_share_in_which_a_person_sees_a_difference() -> None:
    one, other = frame(WHITE), frame(WHITE)
    other[80:160, 80:160] = (200, 255, 255)
    assert unlike(one, one) == 0
    assert unlike(one, other) == pytest.approx(80 * 80 / (WIDTH * HEIGHT))
    assert unlike(one, one[:, :-1]) == 1
    # Too faint, and too small: a pixel that an edge was drawn around otherwise.
    assert unlike(one, np.full_like(one, 250)) == 0
    other = frame(WHITE)
    other[::8, ::8] = (0, 0, 0)
    assert unlike(one, other) == 0
