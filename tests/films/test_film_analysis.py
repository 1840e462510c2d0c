"""A run's files about its film are the same as those that Browsertime's script and separate decoders compute from the
film that a campaign keeps."""

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support.film_reference import film_size, frame_times_ms, keep_reference, metrics_of, whole_frames
from support.films import ORANGE, WHITE, Scene, film, frame, kept_film, page

from dataset.run_files import FILM, FILM_LOG, LAST, NAVIGATION, STRIP, VISUAL
from films.decoding import Pixels, decode
from films.log import read_log
from films.playable import make_playable
from measure.run.evidence import analyse_film

pytestmark = pytest.mark.slow

KEPT = {VISUAL, LAST, STRIP}
BEGINNING = [(frame(ORANGE), 300), (frame(WHITE), 360)]


def noisy(picture: Pixels, amount: int, pixels: slice) -> Pixels:
    """`picture` with noise in some rows: each colour differs by up to `amount`."""
    result = picture.astype(np.int16)
    result[pixels] += np.random.default_rng(2).integers(-amount, amount + 1, result[pixels].shape)
    return result.clip(0, 255).astype(np.uint8)


def faint(picture: Pixels, depth: int, rows: slice) -> Pixels:
    """`picture`, in which some rows are darker by `depth`."""
    result = picture.copy()
    result[rows] -= depth
    return result


def with_dot(picture: Pixels, row: int, column: int, size: int = 1) -> Pixels:
    result = picture.copy()
    result[row : row + size, column : column + size] = (0, 0, 0)
    return result


def moving(pictures: int) -> list[Scene]:
    return [(with_dot(page(0.5), 150, 10 * number, 20), 33) for number in range(pictures)]


FILMS = {
    # Another frame comes before the orange. The changes are in the first columns, at the edges, too faint, or only a
    # few pixels large.
    "stray and faint": [
        (frame(WHITE), 66),
        *BEGINNING,
        (noisy(frame(WHITE), 20, slice(100, 200)), 99),
        (with_dot(frame(WHITE), 30, 0, 8), 99),
        (with_dot(frame(WHITE), 2, 100, 10), 99),
        (with_dot(page(0.3), 239, 319), 132),
        (page(0.8), 165),
        (noisy(page(0.8), 30, slice(60, 120)), 198),
        (with_dot(page(0.8), 100, 100, 2), 231),
        (page(0.8), 990),
    ],
    # The first change is in the middle, which is ignored. The last changes are faint, small, or in the top rows.
    "middle and end": [
        *BEGINNING,
        (with_dot(frame(WHITE), 118, 158, 4), 132),
        (page(0.3), 198),
        (page(0.8), 264),
        (faint(page(0.8), 32, slice(200, 230)), 231),
        (with_dot(page(0.8), 220, 100), 198),
        (with_dot(page(0.8), 2, 100, 10), 297),
    ],
    # The page appears for a moment and disappears again. Then it moves until the film's last frame.
    "carousel": [*BEGINNING, (page(1.0), 33), (page(0.2), 132), (page(1.0), 33), *moving(14)],
    # Nothing appears, and at the end the browser's window is orange again.
    "blank": [*BEGINNING, (frame(WHITE), 660), (frame(ORANGE), 99)],
    "mobile": [
        (frame(ORANGE, 412, 732), 231),
        (frame(WHITE, 412, 732), 99),
        (np.tile(frame((30, 90, 200), 206, 732), (1, 2, 1)), 1320),
    ],
}


@pytest.fixture(scope="module", params=FILMS)
def analysed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose film was analysed. Tests share it, and must not change it."""
    path = film(tmp_path_factory.mktemp("run"), FILMS[request.param])
    analyse_film(path.parent)
    return path.parent


def assert_same(run: Path, folder: Path) -> None:
    """Make the film that a campaign keeps in `folder`. Assert that `keep_reference` computes from it the same files as
    are in `run`."""
    (folder / FILM_LOG).write_bytes((run / FILM_LOG).read_bytes())
    make_playable(folder, small=False)
    keep_reference(run, folder)
    for name in KEPT:
        assert (run / name).read_bytes() == (folder / name).read_bytes(), name


def test_what_is_kept_of_a_film_is_what_the_long_way_gives_on_the_kept_film(analysed: Path, tmp_path: Path) -> None:
    assert_same(analysed, tmp_path)
    # The analysis leaves no other files.
    assert {path.name for path in analysed.iterdir()} == {FILM_LOG, NAVIGATION, *KEPT}


def test_a_kept_film_has_its_pictures_and_times_to_the_microsecond(tmp_path: Path) -> None:
    scenes = [*BEGINNING, (page(0.5), 41), (with_dot(page(0.5), 200, 20), 7), (page(1.0), 1)]
    path = film(tmp_path, scenes)
    log = read_log(path)
    pictures: list[Pixels] = []
    decode(path, log, {"pictures": pictures.append})
    make_playable(tmp_path, small=False)
    assert not path.exists()
    size = film_size(tmp_path / FILM)
    expected_ms = [(time_us - log.times_us[0]) / 1000 for time_us in log.times_us]
    assert frame_times_ms(tmp_path / FILM) == [*expected_ms, (log.ended_us - log.times_us[0]) / 1000]
    kept = whole_frames(tmp_path / FILM, size)
    assert np.array_equal(kept, [*pictures, pictures[-1]])
    assert np.array_equal(pictures, [picture for picture, _ in scenes])


def test_metrics_of_a_small_film_are_nearly_those_of_the_log(tmp_path: Path) -> None:
    path = kept_film(tmp_path, [*BEGINNING, (page(0.5), 300), (page(1.0), 300)], small=True)
    metrics, reference = json.loads((tmp_path / VISUAL).read_text())["metrics"], metrics_of(path)
    assert (metrics["fvc"], metrics["lvc"]) == (reference["FirstVisualChange"], reference["LastVisualChange"])
    assert metrics["si"] == pytest.approx(reference["SpeedIndex"], abs=10)


def test_only_changes_have_pictures(tmp_path: Path) -> None:
    # There are four changes, since a single pixel that appears is one, and so is its disappearance.
    scenes = [*BEGINNING, (with_dot(frame(WHITE), 239, 0), 160), (frame(WHITE), 160), (frame(WHITE), 160)]
    pictures: dict[str, list[Pixels]] = {"blocks": [], "strip": []}
    path = film(tmp_path, scenes)
    assert decode(path, read_log(path), {name: each.append for name, each in pictures.items()}) == ()
    assert {name: len(each) for name, each in pictures.items()} == {"blocks": 4, "strip": 4}


def test_a_film_that_moves_for_long_takes_little_memory_and_none_of_the_disk(tmp_path: Path) -> None:
    # Its thumbnails take 13 MB, and the pictures for its strip 4 MB.
    film(tmp_path, [*BEGINNING, *moving(80)])
    analyse = "import sys; from pathlib import Path; from measure.run.evidence import analyse_film\n"
    analyse += "analyse_film(Path(sys.argv[1]))"
    # With this limit, the analysis can store its own small files, but no file as large as the pictures.
    command: list[str | Path] = ["prlimit", f"--fsize={1 << 20}", sys.executable, "-c", analyse, tmp_path]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / VISUAL).read_text())["faults"] == []
    tracemalloc.start()
    try:
        analyse_film(tmp_path, pictures_bytes=1 << 20)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # This is more than 1 MB of each kind: the first thumbnails are kept in addition, and computing takes memory, too.
    assert peak_bytes < 6 << 20


def test_pictures_that_were_not_kept_are_decoded_again(analysed: Path, tmp_path: Path) -> None:
    for name in (FILM_LOG, NAVIGATION):
        (tmp_path / name).write_bytes((analysed / name).read_bytes())
    analyse_film(tmp_path, pictures_bytes=0)
    for name in KEPT:
        assert (tmp_path / name).read_bytes() == (analysed / name).read_bytes(), name


@pytest.mark.parametrize("name", [LAST, STRIP])
def test_a_full_disk_is_no_fault_of_the_film(tmp_path: Path, name: str) -> None:
    film(tmp_path, [*BEGINNING, (page(1.0), 300)])
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        analyse_film(tmp_path)
