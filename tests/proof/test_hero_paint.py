"""A page's largest contentful paint (`lcp`), as the browser reports it, is when the film shows its hero picture.

Film and page share one clock and one zero. A paint is on the screen at most one frame of the compositor (17 ms) later;
`lcp` is in whole ms, and some browsers round it up to 4 ms. `pytest -s` prints each run's times.
"""

import csv
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.films import ORANGE, WHITE, frame, kept_film
from support.heroes import Area, change_of, hero_of, hero_recordings
from support.material import recording_path

from dataset.run_files import FILM, TIMINGS
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.progress import ProgressDisplay
from measure.run.setting import Loading
from record.formats import read_recording
from record.site import Recording, write_site
from tuning import networks, protocols

# A frame of the screen at 60 Hz.
FRAME_MS = 1000 / 60
FRAMES = 2
# `lcp` is rounded up to this.
ROUNDING_MS = 4
NETWORK, PROTOCOLS, RUNS = "dsl", ("tcp+", "quic"), 3
# Recordings whose page has one large picture that does not move, by the names of their sites. On some, text covers a
# part of it, and changes when its fonts arrive.
RECORDINGS = {
    "about": "mahimahi/about",
    "apple": "mahimahi/www.apple.com",
    "outbrain": "mahimahi/outbrain",
    "weather": "mahimahi/weather",
}
REST_OF_GENERATED, REST_OF_RECORDED = 0.01, 0.05
CASES = [
    *(pytest.param("chromium", name, marks=pytest.mark.needs_browser) for name in hero_recordings()),
    *(
        pytest.param("chromium", name, marks=[pytest.mark.needs_browser, pytest.mark.needs_corpus])
        for name in RECORDINGS
    ),
    *(pytest.param("firefox", name, marks=pytest.mark.needs_firefox) for name in hero_recordings()),
]


def recording(name: str) -> Recording:
    return read_recording(recording_path(RECORDINGS[name])) if name in RECORDINGS else hero_recordings()[name]


@pytest.mark.needs_namespaces
@pytest.mark.timing
@pytest.mark.parametrize(("browser", "name"), CASES)
def test_lcp_is_when_the_film_shows_the_hero(browser: str, name: str, tmp_path: Path) -> None:
    campaign = Campaign(
        folder=tmp_path / "results",
        sites={name: write_site(recording(name), tmp_path / name)},
        networks={NETWORK: networks.load()[NETWORK]},
        protocols={protocol: protocols.load()[protocol] for protocol in PROTOCOLS},
        runs=RUNS,
        seed=1,
        loading=Loading(browser=browser),
    )
    measure(campaign, partial(ProgressDisplay, Console()))
    with (campaign.folder / "runs.csv").open() as file:
        runs = [run for run in csv.DictReader(file) if run["valid"] == "true"]
    assert len(runs) == len(PROTOCOLS) * RUNS
    late_frames = []
    for run in runs:
        folder = campaign.folder / run["folder"]
        (page,) = json.loads((folder / TIMINGS).read_text())
        hero = hero_of(page)
        assert hero, "the largest contentful paint is no picture"
        change = change_of(folder / FILM, hero.area, REST_OF_RECORDED if name in RECORDINGS else REST_OF_GENERATED)
        late_frames.append((change.whole_ms - float(run["lcp"])) / FRAME_MS)
        print(
            f"\n{browser} {name} {run['protocol']}: LCP {run['lcp']} ms, of {hero.area.width} by {hero.area.height} "
            f"pixels of {hero.url[:80]}; in the film from {change.began_ms:.0f} ms on, whole at {change.whole_ms:.0f} "
            f"ms, {late_frames[-1]:+.1f} frames",
            end="",
        )
    print(f"\n{browser} {name}: {min(late_frames):+.1f} to {max(late_frames):+.1f} frames, {np.mean(late_frames):+.1f}")
    assert max(abs(late) for late in late_frames) <= FRAMES + ROUNDING_MS / FRAME_MS


def test_the_film_shows_a_picture_from_the_frame_on_in_which_all_of_it_is_there(tmp_path: Path) -> None:
    blank, whole = frame(WHITE), frame(WHITE)
    area = Area(40, 30, 200, 100)
    rows, columns = slice(area.y, area.y + area.height), slice(area.x, area.x + area.width)
    whole[rows, columns] = np.random.default_rng(1).integers(0, 200, (area.height, area.width, 3))
    half = whole.copy()
    half[area.y + area.height // 2 :] = 255
    elsewhere = whole.copy()
    elsewhere[200:] = 0
    scenes = [(frame(ORANGE), 200), (blank, 300), (half, 100), (whole, 600), (elsewhere, 1)]
    change = change_of(kept_film(tmp_path, scenes), area, REST_OF_GENERATED)
    assert (change.began_ms, change.whole_ms) == pytest.approx((300, 400), abs=0.1)
