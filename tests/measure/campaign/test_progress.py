"""The progress display of a running campaign."""

import io
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from factories import ROW, rejected
from rich.console import Console
from support.scripted import row_of

from base.words import clock_in
from dataset.reasons import Reason
from dataset.table import GivenUp, Run
from measure.campaign.block import Beginning, Judgement, Notice
from measure.campaign.forecast import Forecast
from measure.campaign.progress import ProgressDisplay
from measure.host.lanes import Lanes

LTE = [Run("s", "lte", "tcp", number) for number in (1, 2, 3)]
DSL = [Run("s", "dsl", "tcp", number) for number in (1, 2, 3)]


@pytest.fixture
def display() -> ProgressDisplay:
    return ProgressDisplay(Console(file=io.StringIO()), [*LTE, *DSL], 0)


def end(display: ProgressDisplay, run: Run, seconds: float) -> None:
    row = replace(ROW, network=run.network, run=run.number, seconds=seconds)
    display.notify(Judgement(row, given_up=False))


def test_runs_that_remain_take_as_long_as_those_of_their_network(display: ProgressDisplay) -> None:
    assert display.time_left() == ""
    end(display, LTE[0], 20)
    assert display.time_left() == "100 s left".replace("100 s", "2 min")
    end(display, LTE[1], 40)
    end(display, DSL[0], 10)
    assert display.time_left() == "50 s left"


def test_what_is_rejected_or_given_up_counts_once(display: ProgressDisplay) -> None:
    for run in LTE:
        end(display, run, 10)
    end(display, DSL[0], 10)
    row = replace(ROW, network="lte", run=1)
    for _ in range(2):
        display.rejects([(row, Reason("gate", "it is unlike"))])
    assert display.time_left() == "30 s left"
    for _ in range(2):
        display.gives_up(GivenUp("s", "dsl", "gate: it is", 2, ""), DSL)
    assert display.time_left() == "10 s left"
    end(display, LTE[0], 10)
    assert display.time_left() == "done"


def test_an_attempt_that_is_made_again_leaves_its_run_open(display: ProgressDisplay) -> None:
    display.notify(Judgement(rejected("gate: it is", seconds=10.0), given_up=False))
    assert display.time_left() == "60 s left"
    display.notify(Judgement(rejected("gate: it is", attempt=2, seconds=10.0), given_up=True))
    assert display.time_left() == "50 s left"


def test_what_is_between_runs_takes_its_share_of_the_time_that_is_left() -> None:
    now_s = 100.0
    display = ProgressDisplay(Console(file=io.StringIO()), LTE, 0, clock=lambda: now_s)
    display.notify(Beginning(LTE[0], 1))
    now_s += 15.0
    # An attempt that does not count, and canaries.
    display.notify(Judgement(rejected("gate: it is", replace(ROW, network="lte"), seconds=10.0), given_up=False))
    now_s += 15.0
    end(display, LTE[0], 10)
    # Two runs are open, and one took 30 s in all.
    assert display.time_left() == "60 s left"


def test_the_first_runs_change_the_forecast_little_and_further_ones_replace_it() -> None:
    now_s = 0.0
    runs = [Run("s", network, "tcp", number) for number in range(100) for network in ("dsl", "lte")]
    display = ProgressDisplay(Console(file=io.StringIO()), runs, 0, lanes=Lanes(4), clock=lambda: now_s)
    with display.live(Forecast(25 * 10 + 25 * 20, 0), {"dsl": 10.0, "lte": 20.0}):
        assert display.time_left() == "12 min left"
        display.notify(Beginning(runs[0], 1, 1))
        # The first run of four lanes, after an attempt that does not count.
        now_s += 20.0
        end(display, runs[0], 10)
        assert display.time_left() == "15 min left"
        for run in runs[1:100]:
            now_s += 10.0
            end(display, run, 40)
        # Half of the runs are open, almost 10 s for each.
        assert display.time_left() == "16 min left"


def test_no_more_time_is_left_than_the_budget() -> None:
    now_s = 100.0
    display = ProgressDisplay(Console(file=io.StringIO()), LTE, 0, clock=lambda: now_s)
    with display.live(Forecast(300, 0), {"lte": 100.0}, 80.0):
        assert display.time_left() == "80 s left"
        now_s += 50.0
        end(display, LTE[0], 50)
        assert display.time_left() == "30 s left"


def test_a_clock_says_when_it_will_be_done() -> None:
    then = datetime.now().astimezone() + timedelta(days=1)
    assert clock_in(86_400).startswith(then.strftime("on %a %d %b at "))
    output = io.StringIO()
    display = ProgressDisplay(Console(file=output, width=300), LTE, 0)
    end(display, LTE[0], 200_000)
    assert re.search(r"4 d 15 h left, done on \w{3} \d\d \w{3} at \d\d:\d\d$", output.getvalue().rstrip())


def test_a_terminal_of_80_columns_shows_when_it_will_be_done_and_what_is_wrong() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, highlight=False)
    network = "longlook-5mbps-62ms-0.01loss"
    runs = [Run("a-long-name.example@without-its-fonts", network, "tcp+bbr", number) for number in range(400)]
    display = ProgressDisplay(console, runs, 360, lanes=Lanes(2))

    def screen() -> list[str]:
        lines = console.render_lines(display.screen(), pad=False)
        return ["".join(part.text for part in line).rstrip() for line in lines]

    until = r"left, done on \w{3} \d\d \w{3} at \d\d:\d\d$"
    with display.live(Forecast(400_000, 4e9), {network: 2000.0}, at_most=True):
        # Before the first run, the forecast already shows when all will be done.
        assert re.search(rf"━ 360/760 4 d 15 h {until}", screen()[0])
        display.notify(Beginning(runs[1], 2, 2))
        display.notify(Beginning(runs[2], 1, 1))
        for run in runs[10:30]:
            row = row_of(run, seconds=2000.0)
            row = row if run.number % 2 else rejected("gate: it is", row)
            display.notify(Judgement(row, given_up=False))
        busy = "the machine is busy: other programs took 1.3 of 2 cores in the last minute (python3, make)"
        display.notify(Notice(busy, 1))
        lane_1, lane_2, progress, attempts, warning = screen()
    assert lane_1.startswith("now, lane 1: a-long-name.example@without-its-fonts longlook-5mbps")
    assert lane_2.startswith("now, lane 2, attempt 2: a-long") and max(map(len, screen())) <= 80
    assert re.search(rf"━ 370/760 4 d 12 h {until}", progress)
    assert attempts == "10 of 20 attempts rejected, runs given up: 0; gate 10"
    assert warning.startswith("warnings: 1, last: the machine is busy: other programs took 1.3")
