"""A run's files about its film are the same as those that Browsertime's script and separate decoders compute from the
film, also for random films and for films of a corpus. The film agrees with FFmpeg's of the same load."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.film_reference import keep_reference, metrics_of
from support.films import ORANGE, WHITE, Scene, film, frame
from support.material import film_paths

from benchmarks.films.agreement import METRICS as SCRIPT_NAMES
from benchmarks.films.agreement import script_metrics
from benchmarks.films.loads import BOTH, FFMPEG_FILM, load
from dataset.run_files import LAST, STRIP, VISUAL
from films.playable import make_playable
from measure.run.evidence import analyse_film

SEEDS = range(60)


@pytest.mark.needs_films
@pytest.mark.parametrize("path", film_paths(), ids=str)
def test_metrics_of_a_campaigns_films_are_those_that_browsertimes_script_makes_of_them(path: Path) -> None:
    document = json.loads((path.parent / VISUAL).read_text())
    reference, blank_ms = metrics_of(path), document["start"]["blank_ms"]
    expected = {name: reference[script_name] + blank_ms for name, script_name in SCRIPT_NAMES.items()}
    # The script's times begin at the blank page. The script and the analysis both round down to ms.
    assert {name: document["metrics"][name] for name in SCRIPT_NAMES} == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_of_a_random_film_is_what_the_long_way_gives(seed: int, tmp_path: Path) -> None:
    run, reference = tmp_path / "run", tmp_path / "reference"
    run.mkdir()
    film(run, random_scenes(np.random.default_rng(seed)))
    analyse_film(run)
    shutil.copytree(run, reference)
    make_playable(reference, small=False)
    keep_reference(run, reference)
    for name in (VISUAL, LAST, STRIP):
        assert (run / name).read_bytes() == (reference / name).read_bytes(), name


def random_scenes(random: np.random.Generator) -> list[Scene]:
    """Orange, a blank page, and then scenes, each of which differs from the one before: in at least a faint dot, in at
    most the whole picture."""
    width, height = (2 * int(side) for side in random.integers(60, 360, 2))
    picture = frame(WHITE, width, height)
    scenes = [
        (picture, 33 * int(random.integers(0, 3))),
        (frame(ORANGE, width, height), 33 * int(random.integers(3, 12))),
    ]
    scenes.append((picture, 33 * int(random.integers(1, 20))))
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
        scenes.append((picture, int(random.choice([16, 33, 167, 660]))))
    return scenes


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.timing
def test_the_film_agrees_with_one_that_ffmpeg_makes_of_the_same_load(tmp_path: Path) -> None:
    one = load("demo-news", "lte", BOTH, tmp_path / "load")
    document, theirs = json.loads((one.folder / VISUAL).read_text()), script_metrics(one.folder / FFMPEG_FILM)
    assert document["recorder"]["missed_pixels"] == 0
    for name, script_name in SCRIPT_NAMES.items():
        ours_ms = document["metrics"][name] - document["start"]["blank_ms"]
        print(f"\n{name}: {ours_ms:.0f} ms, by FFmpeg {theirs[script_name]} ms", end="")
        # FFmpeg takes a frame every 33 ms, and a change may be up to three frames late.
        assert ours_ms == pytest.approx(theirs[script_name], abs=4 * 33.4)
