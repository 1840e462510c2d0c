"""A user study from a campaign's films to its report, played through in the packaged browser by keyboard alone."""

import csv
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.axe import accessible_now
from support.browser import Browser
from support.participant import ENTER, TAB, begin, go_on, wait_for
from support.reports import accessible_report
from support.serving import served
from support.user_studies import SHORT_STUDY, filmed_campaign

from analysis.user_study.clips import Key, read_key
from analysis.user_study.section import section
from analysis.user_study.server import Collector, StudyServer
from analysis.user_study.votes import COLUMNS, read_votes
from base.places import tool
from eyelevel.commands.user_study import main
from eyelevel.defaults import USER_STUDY_ADDRESS as LOCAL

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign and its kit: over QUIC, pages are painted 400 ms earlier."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(SHORT_STUDY)
    campaign = filmed_campaign(folder / "c")
    done = CliRunner().invoke(main, ["write", str(campaign), "--study", str(folder / "study.toml")])
    assert done.exit_code == 0, done.output
    return campaign


@pytest.fixture(scope="module")
def key(campaign: Path) -> Key:
    return read_key(campaign / "user-study")


class Pages(SimpleHTTPRequestHandler):
    """A web server of the simplest kind."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: tests check the page."""


def pictures(film: Path, width: int, height: int) -> np.ndarray:
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-i", film, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, dtype=np.uint8).reshape(-1, height, width, 3)


def test_both_sides_of_a_pair_begin_with_the_navigation(campaign: Path, key: Key) -> None:
    size = 240
    for clip in key.clips:
        frames = pictures(campaign / f"user-study/site/clips/{clip.name}.mp4", size * len(clip.sides), size)
        assert len(frames) == -(-clip.length_s * 30 // 1)
        for place, side in enumerate(clip.sides):
            # Each side is a square with a page of 4:3. The row of pixels in its middle shows whether the page is
            # painted.
            middle = frames[:, size // 2, place * size : (place + 1) * size].astype(int).mean(axis=(1, 2))
            painted = int(np.argmax(middle < 200))
            # The colours of a lower-quality film are slightly off, but no orange is left.
            assert abs(frames[0, size // 2, place * size + size // 2].astype(int) - 255).max() < 10
            assert painted == round((side.metrics["fvc"] / 1000 + side.delay_s) * 30), clip


def test_what_participants_can_see_says_nothing_of_protocols(campaign: Path, key: Key) -> None:
    site = campaign / "user-study" / "site"
    texts = [path.read_text() for path in site.iterdir() if path.is_file()]
    for word in ("quic", "tcp", "site-01", "delayed", "identical"):
        assert not any(word in text.lower() for text in texts), word
    assert {path.stem for path in (site / "clips").iterdir()} == set(key.by_name())


def test_a_session_by_keyboard_ends_in_the_report(browser: Browser, campaign: Path, key: Key) -> None:
    browser.narrow(1400)
    kit = campaign / "user-study"
    with served(StudyServer((LOCAL, 0), Collector(kit))) as url:
        begin(browser, f"{url}?group=lab")
        # Each part consists of practice, the measured trials and the controls.
        plays = [*go_on(browser, 2, least_plays=2), *go_on(browser)]
        assert len(plays) == (1 + 2 + 2) + (1 + 1 + 2)
        addresses = browser.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        assert browser.console() == []
    assert [name for name in addresses if not name.startswith((url, "data:", f"blob:{url}"))] == []
    votes = read_votes(kit / "votes", key).table
    assert list(votes["trial"]) == list(range(1, 8)) and set(votes["group"]) == {"lab"}
    del plays[5], plays[0]  # practice
    assert list(votes["plays"]) == plays and plays[0] >= 2
    assert votes["away_ms"].eq(0).all()
    assert sorted(votes[votes["part"] == "pairs"]["swapped"]) == [False, False, True]
    report = section(campaign)
    assert report is not None
    lead, took_part, controls, *_ = report.paragraphs
    # A careful participant notices a difference of 400 ms, and a film that a control delays, but no difference between
    # identical films.
    assert "people notice a difference between TCP+ and QUIC in 100.0 % (2.5 % to 100.0 %) of their votes" in lead
    assert "100.0 % say that QUIC loads faster, 0.0 % that TCP+ does" in lead
    assert took_part == "1 person took part, of whom 1 count."
    assert controls.startswith("Between identical films, people see a difference in 0.0 % ")
    done = CliRunner().invoke(main, ["write", str(campaign)])
    assert done.exit_code and "has votes on the clips there" in str(done.exception)


@pytest.mark.needs_axe
def test_everybody_can_see_every_screen_and_the_section_on_its_votes(
    browser: Browser, campaign: Path, tmp_path: Path
) -> None:
    faults: dict[str, list[str]] = {}
    shutil.copytree(campaign, tmp_path / "c")

    def see(name: str) -> None:
        # Check one screen of each kind: all trials of a kind look alike.
        if name not in faults:
            faults[name] = accessible_now(browser)

    with served(StudyServer((LOCAL, 0), Collector(tmp_path / "c" / "user-study"))) as url:
        browser.narrow(1400)
        begin(browser, url, see)
        go_on(browser, see=see, cares=False)
    assert set(faults) == {"welcome", "ratings", "rating", "pairs", "pair", "end"}
    assert all(faults_of == [] for faults_of in faults.values()), faults
    assert accessible_report(browser, tmp_path / "c") == []


def test_without_a_place_for_votes_participants_download_them(
    browser: Browser, campaign: Path, key: Key, tmp_path: Path
) -> None:
    browser.narrow(390)
    browser.download_into(tmp_path)
    pages = partial(Pages, directory=campaign / "user-study" / "site")

    def see(name: str) -> None:
        assert browser.run("return document.documentElement.scrollWidth") <= 390, name
        if name == "pair":
            browser.look_elsewhere()

    with served(ThreadingHTTPServer((LOCAL, 0), pages)) as url:
        address = f"{url}?part=pairs"
        begin(browser, address, see)
        # Practice, and the first trial that counts.
        assert len(go_on(browser, 2, see=see, cares=False)) == 2
        # A reloaded page resumes at the same place.
        browser.open(address)
        wait_for(browser, "!document.getElementById('pairs').hidden")
        assert len(go_on(browser, see=see, cares=False)) == 2
        assert browser.run("return document.getElementById('unsent').innerText").startswith("Your answers are only on")
        browser.press(TAB, ENTER)
        file = eventually(lambda: next(tmp_path.glob("votes-*.csv"), None))
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [row["trial"] for row in rows] == ["1", "2", "3"]
    assert {row["layout"] for row in rows} == {"stacked"}
    assert all(int(row["away_ms"]) > 0 for row in rows)
    votes = read_votes(tmp_path, key)
    assert (len(votes.table), votes.broken) == (3, 0)


def eventually(value: Callable[[], Path | None]) -> Path:
    """Wait until `value` returns something, and return it. The browser does not report when it has written a file."""
    while (path := value()) is None:
        time.sleep(0.02)
    return path
