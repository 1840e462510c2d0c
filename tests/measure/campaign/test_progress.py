"""The progress display of a running campaign."""

import io
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from factories import ROW, rejected
from rich.console import Console
from support.forecasts import ratios
from support.scripted import row_of

from base.places import PROJECT
from base.words import clock_in
from dataset.reasons import Reason
from dataset.table import GivenUp, Run, read_rows, require_document
from measure.campaign.block import Beginning, Judgement, Notice
from measure.campaign.forecast import Forecast, RunModel
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


def test_runs_that_remain_take_as_long_as_the_forecast_of_their_cell(display: ProgressDisplay) -> None:
    assert display.time_left() == ""
    display.expects({("s", "lte"): 10.0, ("s", "dsl"): 5.0})
    assert display.time_left() == "45 s left"
    end(display, LTE[0], 40)
    assert display.time_left() == "35 s left"
    display.expects({("s", "lte"): 15.0, ("s", "dsl"): 5.0})
    end(display, DSL[0], 10)
    assert display.time_left() == "40 s left"


def test_what_is_rejected_or_given_up_counts_once(display: ProgressDisplay) -> None:
    display.expects({("s", "lte"): 10.0, ("s", "dsl"): 10.0})
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
    display.expects({("s", "lte"): 10.0, ("s", "dsl"): 10.0})
    display.notify(Judgement(rejected("gate: it is", seconds=10.0), given_up=False))
    assert display.time_left() == "60 s left"
    display.notify(Judgement(rejected("gate: it is", attempt=2, seconds=10.0), given_up=True))
    assert display.time_left() == "50 s left"


# The constants of the model were fitted to these attempts, so another campaign may be foretold worse.
@pytest.mark.parametrize(("one", "within"), [(1, 0.1), (2, 0.1), (3, 0.13)])
def test_the_time_of_the_reference_s_round_was_known_after_a_tenth_of_it(one: int, within: float) -> None:
    folder = PROJECT / "data" / "reference"
    rows = [row for row in read_rows(folder) if row.run == one]
    model = RunModel.of(require_document(folder))
    for share, ratio in zip((0.1, 0.25, 0.5), ratios(rows, model, (0.1, 0.25, 0.5)), strict=True):
        assert ratio == pytest.approx(1, abs=within), share


def test_no_more_time_is_left_than_the_budget() -> None:
    now_s = 100.0
    display = ProgressDisplay(Console(file=io.StringIO()), LTE, 0, clock=lambda: now_s)
    display.expects({("s", "lte"): 100.0})
    with display.live(Forecast(300, 0), 80.0):
        assert display.time_left() == "80 s left"
        now_s += 50.0
        end(display, LTE[0], 50)
        assert display.time_left() == "30 s left"


def test_a_clock_says_when_it_will_be_done() -> None:
    then = datetime.now().astimezone() + timedelta(days=1)
    assert clock_in(86_400).startswith(then.strftime("on %a %d %b at "))
    output = io.StringIO()
    display = ProgressDisplay(Console(file=output, width=300), LTE, 0)
    display.expects({("s", "lte"): 200_000.0})
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
    display.expects({runs[0].cell: 1000.0})
    with display.live(Forecast(400_000, 4e9), at_most=True):
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
