"""Which runs' films are shown, and whether their frames match the times under them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from support.films import ORANGE, WHITE, frame, kept_film, page

from analysis.figures import figure4, style
from analysis.figures.films import Shot, disagreement, strips, typical
from analysis.statistics.hypotheses import Pair
from base.errors import EyelevelError
from films import kept

# After 400 ms of orange: nothing for 300 ms, half the page for 300 ms, then all of it.
SCENES = [(frame(ORANGE), 400), (frame(WHITE), 300), (page(0.5), 300), (page(1.0), 1)]
METRICS = {"fvc": 300.0, "vc85": 600.0, "si": 450.0, "lvc": 600.0, "plt": 800.0}


def shot(path: Path) -> Shot:
    return Shot(path, "site", "lte", "quic", 1, METRICS)


@pytest.fixture(scope="module", params=["lossless", "small"])
def filmed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's film as campaigns keep it."""
    return kept_film(tmp_path_factory.mktemp("run"), SCENES, small=request.param == "small")


def painted(picture: np.ndarray) -> float:
    """The share of a picture that is not white."""
    return float((picture.min(axis=2) < 240).mean())


def test_frames_are_those_of_their_times(filmed: Path) -> None:
    shares = [painted(picture) for picture in kept.frames(filmed, [50, 250, 350, 550, 650, 5000])]
    assert shares == pytest.approx([0, 0, 0.5, 0.5, 1, 1], abs=0.03)


def test_a_strip_says_how_complete_each_frame_is(filmed: Path) -> None:
    (strip,) = strips([shot(filmed)], count=4)
    assert strip.times_ms == (200, 400, 600, 800)
    assert strip.complete[0] == 0 and strip.complete[-1] == 100
    assert 20 < strip.complete[1] < 80
    figure = figure4.draw([strip, strip])
    names = [axes.get_xlabel() for axes in figure.axes[:4]]
    assert ["FVC" in name for name in names] == [False, True, False, False]
    assert ["PLT" in name for name in names] == [False, False, False, True]
    # The first frame with the complete page is marked.
    marked = [axes.spines["top"].get_edgecolor() == to_rgba(style.ORANGE) for axes in figure.axes[:4]]
    assert [place for place, is_marked in enumerate(marked) if is_marked] == [strip.first_complete]


@pytest.mark.parametrize(
    ("end_ms", "count", "times_ms"), [(690, 4, (200, 400, 600, 800)), (5596, 6, tuple(range(1000, 6001, 1000)))]
)
def test_the_frames_of_a_strip_are_in_round_steps(
    filmed: Path, end_ms: float, count: int, times_ms: tuple[float, ...]
) -> None:
    (strip,) = strips([shot(filmed)], count, end_ms)
    assert strip.times_ms == times_ms


def test_the_progress_is_that_of_the_films_own_metrics(filmed: Path) -> None:
    computed = kept.progress(filmed)
    assert [at_ms for at_ms, _ in computed] == [0, 300, 600]
    assert computed[0] == (0, 0) and computed[-1][1] == 100


def test_a_film_without_what_the_measurement_knew_of_it_is_an_error(filmed: Path, tmp_path: Path) -> None:
    (alone := tmp_path / filmed.name).hardlink_to(filmed)
    for question in (lambda: kept.progress(alone), lambda: kept.frames(alone, [50])):
        with pytest.raises(EyelevelError, match=r"visual\.json"):
            question()


def test_a_film_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"no film")
    (tmp_path / "visual.json").write_text('{"zero_s": 0.4}')
    with pytest.raises(EyelevelError, match="cannot be decoded"):
        kept.small_copy(tmp_path / "film.mp4", 2)


def test_the_run_nearest_to_the_median_that_has_its_film_is_shown(tmp_path: Path) -> None:
    times = {1: 500.0, 2: 700.0, 3: 690.0, 4: 720.0, 5: 9000.0}
    rows = [
        {"site": "s", "network": "lte", "protocol": "quic", "run": run, "valid": run != 5, "folder": f"runs/{run}"}
        | dict.fromkeys(METRICS, si)
        for run, si in times.items()
    ]
    runs = pd.DataFrame(rows)
    assert typical(runs, tmp_path, "s", "lte", "quic") is None
    for run in (1, 2, 3, 4):
        (tmp_path / f"runs/{run}").mkdir(parents=True)
    for run in (1, 4):
        (tmp_path / f"runs/{run}/film.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    # Somebody else's results may have, in place of films, a list of files that FFmpeg would read, and a link to a film
    # outside the campaign.
    (tmp_path / "runs/2/film.mp4").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\nfile:///etc/passwd\n")
    (tmp_path / "elsewhere.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    (tmp_path / "runs/3/film.mp4").symlink_to(tmp_path / "elsewhere.mp4")
    result = typical(runs, tmp_path, "s", "lte", "quic")
    assert result is not None and result.run == 4


def test_sites_whose_metrics_disagree_most_come_first() -> None:
    gains = {"agrees": (-0.2, -0.19), "disagrees": (0.3, -0.1), "a little": (-0.1, -0.2), "half": (0.5, None)}
    rows = [
        {"network": "lte", "reference": "tcp", "compared": "quic", "site": site, "metric": metric, "gain": gain}
        for site, pair in gains.items()
        for metric, gain in zip(("si", "plt"), pair, strict=True)
        if gain is not None
    ]
    result = disagreement(pd.DataFrame(rows), "lte", Pair("tcp", "quic"))
    assert result == ["disagrees", "a little", "agrees"]
    assert disagreement(pd.DataFrame(rows), "dsl", Pair("tcp", "quic")) == []
