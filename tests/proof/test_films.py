"""Runs keep of their films what Browsertime's script, and a decoder for each other question, compute from them."""

from pathlib import Path

import numpy as np
import pytest
from support.film_reference import keep_reference
from support.films import ORANGE, WHITE, film, frame
from support.material import film_paths

from dataset.run_files import FILM, LAST, STRIP, VISUAL
from films.decoding import Pixels
from measure.run.evidence import analyse_film

SEEDS = range(60)


def assert_same(path: Path, folder: Path) -> None:
    """Assert that `analyse_film` keeps of the film at `path` what the long way gives; both work in `folder`."""
    for name in ("run", "reference"):
        (folder / name).mkdir()
    (folder / "run" / FILM).symlink_to(path)
    analyse_film(folder / "run")
    keep_reference(path, folder / "reference")
    for name in (VISUAL, LAST, STRIP):
        assert (folder / "run" / name).read_bytes() == (folder / "reference" / name).read_bytes(), name


@pytest.mark.needs_films
@pytest.mark.parametrize("path", film_paths(), ids=str)
def test_what_is_kept_of_a_campaigns_films_is_what_the_long_way_gives(path: Path, tmp_path: Path) -> None:
    assert_same(path, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_of_a_random_film_is_what_the_long_way_gives(seed: int, tmp_path: Path) -> None:
    assert_same(film(tmp_path / FILM, random_scenes(np.random.default_rng(seed))), tmp_path)


def random_scenes(random: np.random.Generator) -> list[tuple[Pixels, int]]:
    """Orange, blank, and then scenes that differ from the one before by anything between faint dots and all."""
    width, height = (2 * int(side) for side in random.integers(60, 360, 2))
    picture = frame(WHITE, width, height)
    scenes = [(picture, int(random.integers(0, 3))), (frame(ORANGE, width, height), int(random.integers(3, 12)))]
    scenes.append((picture, int(random.integers(1, 20))))
    for _ in range(int(random.integers(0, 25))):
        picture = picture.astype(np.int16)
        sides = [max(1, int(side * random.choice([0.01, 0.05, 0.3, 1]))) for side in (height, width)]
        row, column = (
            int(random.integers(0, whole - side + 1)) for whole, side in zip((height, width), sides, strict=True)
        )
        area = picture[row : row + sides[0], column : column + sides[1]]
        depth = int(random.choice([3, 20, 40, 255]))
        area += random.integers(-depth, depth + 1, area.shape if random.random() < 0.5 else 3)
        picture = picture.clip(0, 255).astype(np.uint8)
        scenes.append((picture, int(random.choice([1, 2, 5, 20]))))
    return scenes
