"""A user study with default settings, with 12 pairs, played through by participants who look, guess and leave the
page."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner
from support.browser import Browser, browsing
from support.participant import begin, go_on
from support.user_studies import filmed_campaign

from base.places import PROJECT
from eyelevel.commands.report import main as report
from eyelevel.commands.user_study import main

# The default: nine pairs of measured films, and three controls.
SITES, PAIRS = 9, 12
FIRST_IS_NOTICED = (
    "On DSL, people notice a difference between TCP+ and QUIC in 100.0 % (15.8 % to 100.0 %) of their votes"
)


def test_sessions_of_twelve_pairs_are_in_the_report(tmp_path: Path) -> None:
    campaign = filmed_campaign(tmp_path / "c", sites=SITES)
    done = CliRunner().invoke(main, ["write", str(campaign)])
    assert done.exit_code == 0, done.output
    with serving(campaign) as url:
        for person in range(4):
            with TemporaryDirectory() as profile, browsing(Path(profile)) as browser:
                browser.narrow(1400 if person else 390)
                begin(browser, f"{url}?part=pairs")
                films = take_part(browser, guesses=person == 2, stays=person != 3)
                assert len(films) == 1 + PAIRS
                assert browser.console() == []
    done = CliRunner().invoke(report, [str(campaign)])
    assert done.exit_code == 0, done.output
    page = (campaign / "report" / "index.html").read_text()
    assert FIRST_IS_NOTICED in page
    assert "4 people took part, of whom 2 count (left out: 1 control failed, 1 away from the page)." in page
    assert "Between identical films, people see a difference in 0.0 % (0.0 % to 84.2 %) of their votes." in page


@contextmanager
def serving(campaign: Path) -> Iterator[str]:
    """Serve the campaign's study for the duration of the block; yields its address."""
    command = [sys.executable, "-m", "eyelevel", "user-study", "serve", str(campaign), "--port", "0"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[0]
        finally:
            server.terminate()
    assert server.returncode == 0


def take_part(browser: Browser, *, guesses: bool, stays: bool) -> list[int]:
    """Go through a session: by looking or by answering "same" to everything, and with or without leaving the page."""
    # The first pair is practice.
    away = [] if stays else [11.0, 0.0]

    def see(name: str) -> None:
        if name == "pair" and away:
            browser.look_elsewhere(away.pop())

    if guesses:
        return go_on(browser, pair=lambda _: "same", see=see)
    return go_on(browser, see=see)
