"""Runs keep of a film what Browsertime's own script, and a decoder for each other question, compute from it."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.film_reference import keep_reference, metrics_of
from support.films import LOSSLESS, ORANGE, WHITE, film, frame, page

from dataset.run_files import FILM, LAST, SMALL_FILM, STRIP, VISUAL
from films.compression import shrink
from films.contents import film_contents
from films.decoding import Pixels, decode
from films.frames import FilmStart, film_start
from films.visual_metrics import visual_metrics
from measure.run.evidence import analyse_film

pytestmark = pytest.mark.slow

KEPT = {VISUAL, LAST, STRIP}
BEGINNING = [(frame(ORANGE), 9), (frame(WHITE), 11)]


def noisy(picture: Pixels, amount: int, pixels: slice) -> Pixels:
    """`picture` with colours that are up to `amount` off in some rows."""
    result = picture.astype(np.int16)
    result[pixels] += np.random.default_rng(2).integers(-amount, amount + 1, result[pixels].shape)
    return result.clip(0, 255).astype(np.uint8)


def faint(picture: Pixels, depth: int, rows: slice) -> Pixels:
    """`picture` with some rows darker by `depth`."""
    result = picture.copy()
    result[rows] -= depth
    return result


def with_dot(picture: Pixels, row: int, column: int, size: int = 1) -> Pixels:
    result = picture.copy()
    result[row : row + size, column : column + size] = (0, 0, 0)
    return result


def moving(frames: int) -> list[tuple[Pixels, int]]:
    return [(with_dot(page(0.5), 150, 10 * number, 20), 1) for number in range(frames)]


FILMS = {
    # Before the orange another frame; what changes is in the first columns, too faint, at the edges, or a few pixels.
    "stray and faint": [
        (frame(WHITE), 2),
        *BEGINNING,
        (noisy(frame(WHITE), 20, slice(100, 200)), 3),
        (with_dot(frame(WHITE), 30, 0, 8), 3),
        (with_dot(frame(WHITE), 2, 100, 10), 3),
        (with_dot(page(0.3), 239, 319), 4),
        (page(0.8), 5),
        (noisy(page(0.8), 30, slice(60, 120)), 6),
        (with_dot(page(0.8), 100, 100, 2), 7),
        (page(0.8), 30),
    ],
    # The first change is in the middle, which is passed over; the last ones are faint, small, or in the top rows.
    "middle and end": [
        *BEGINNING,
        (with_dot(frame(WHITE), 118, 158, 4), 4),
        (page(0.3), 6),
        (page(0.8), 8),
        (faint(page(0.8), 32, slice(200, 230)), 7),
        (with_dot(page(0.8), 220, 100), 6),
        (with_dot(page(0.8), 2, 100, 10), 9),
    ],
    # It flashes, falls back, and never stops moving, to the film's last frame.
    "carousel": [*BEGINNING, (page(1.0), 1), (page(0.2), 4), (page(1.0), 1), *moving(14)],
    # Nothing appears; then the browser's window goes.
    "blank": [*BEGINNING, (frame(WHITE), 20), (frame(ORANGE), 3)],
    "mobile": [
        (frame(ORANGE, 412, 732), 7),
        (frame(WHITE, 412, 732), 3),
        (np.tile(frame((30, 90, 200), 206, 732), (1, 2, 1)), 40),
    ],
}


@pytest.fixture(scope="module", params=FILMS)
def analysed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose film was analysed; nobody may change it."""
    path = film(tmp_path_factory.mktemp("run") / FILM, FILMS[request.param])
    analyse_film(path.parent)
    return path.parent


def assert_same(run: Path, folder: Path) -> None:
    keep_reference(run / FILM, folder)
    for name in KEPT:
        assert (run / name).read_bytes() == (folder / name).read_bytes(), name


def test_what_is_kept_of_a_film_is_what_the_long_way_gives(analysed: Path, tmp_path: Path) -> None:
    assert_same(analysed, tmp_path)
    # Nothing else is left.
    assert {path.name for path in analysed.iterdir()} == {FILM, *KEPT}


def test_missing_frames_and_another_rate_change_nothing(tmp_path: Path) -> None:
    run, reference = tmp_path / "run", tmp_path / "reference"
    run.mkdir()
    reference.mkdir()
    # As a recorder that is late leaves it.
    options = ("-vf", "select=not(between(n\\,3\\,5)+between(n\\,31\\,34))", "-fps_mode", "vfr", *LOSSLESS)
    scenes = [*BEGINNING, (page(0.5), 15), (page(1.0), 25)]
    path = film(run / FILM, scenes, "30000/1001", options)
    contents = film_contents(path)
    assert len(contents.times.times) == 60 - 3 - 4
    assert film_start(contents.times, contents.looks) == FilmStart(0, 9, blank_after=True)
    analyse_film(run)
    assert_same(run, reference)


def test_a_strip_begins_with_the_navigation_at_any_rate(tmp_path: Path) -> None:
    # As on a busy machine, where FFmpeg took the screen's rate for 120.
    scenes = [(frame(ORANGE), 90), (frame(WHITE), 60), (page(1.0), 90)]
    film(tmp_path / FILM, scenes, "120")
    analyse_film(tmp_path)
    with Image.open(tmp_path / STRIP) as strip:
        first, *_, last = np.split(np.asarray(strip.convert("L")), 8, axis=1)
    assert first.min() > 240
    assert last.mean() < 140


def test_metrics_of_a_small_film_are_those_of_the_script(tmp_path: Path) -> None:
    shrink(film(tmp_path / FILM, [*BEGINNING, (page(0.5), 9), (page(1.0), 30)]))
    contents = film_contents(tmp_path / SMALL_FILM)
    metrics, reference = visual_metrics(contents.times, contents.thumbnails), metrics_of(tmp_path / SMALL_FILM)
    assert (metrics.fvc, metrics.lvc, metrics.si, metrics.progress) == (
        reference["FirstVisualChange"],
        reference["LastVisualChange"],
        reference["SpeedIndex"],
        reference["VisualProgress"],
    )


def test_only_changes_have_pictures(tmp_path: Path) -> None:
    # A pixel in the first column of the last row is a change, and so is its end.
    scenes = [*BEGINNING, (with_dot(frame(WHITE), 239, 0), 5), (frame(WHITE), 5)]
    pictures: dict[str, list[Pixels]] = {"blocks": [], "strip": []}
    times = decode(film(tmp_path / FILM, scenes), {name: each.append for name, each in pictures.items()})
    assert times.changes == (0, 9, 20, 25)
    assert len(times.times) == 30
    assert {name: len(each) for name, each in pictures.items()} == {"blocks": 4, "strip": 4}


def test_a_film_that_moves_for_long_takes_little_memory_and_none_of_the_disk(tmp_path: Path) -> None:
    # Thumbnails of 13 MB, and pictures for the strip of 4 MB.
    film(tmp_path / FILM, [*BEGINNING, *moving(80)])
    analyse = "import sys; from pathlib import Path; from measure.run.evidence import analyse_film\n"
    analyse += "analyse_film(Path(sys.argv[1]))"
    # The files that it stores are small; a larger file cannot be written.
    command: list[str | Path] = ["prlimit", f"--fsize={1 << 20}", sys.executable, "-c", analyse, tmp_path]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / VISUAL).read_text())["faults"] == []
    tracemalloc.start()
    try:
        analyse_film(tmp_path, pictures_bytes=1 << 20)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The stray ones among the thumbnails, too, and what is computed of them.
    assert peak_bytes < 6 << 20


def test_pictures_that_were_not_kept_are_decoded_again(analysed: Path, tmp_path: Path) -> None:
    (tmp_path / FILM).symlink_to(analysed / FILM)
    analyse_film(tmp_path, pictures_bytes=0)
    for name in KEPT:
        assert (tmp_path / name).read_bytes() == (analysed / name).read_bytes(), name


@pytest.mark.parametrize("name", [LAST, STRIP])
def test_a_full_disk_is_no_fault_of_the_film(tmp_path: Path, name: str) -> None:
    film(tmp_path / FILM, [*BEGINNING, (page(1.0), 9)])
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        analyse_film(tmp_path)
