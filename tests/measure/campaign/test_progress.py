"""What a person sees of a campaign while it runs."""

import io
import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from factories import ROW, rejected
from rich.console import Console

from measure.campaign.progress import ProgressDisplay, clock_in
from measure.reasons import Reason
from measure.table import GivenUp, Run

LTE = [Run("s", "lte", "tcp", number) for number in (1, 2, 3)]
DSL = [Run("s", "dsl", "tcp", number) for number in (1, 2, 3)]


@pytest.fixture
def display() -> ProgressDisplay:
    return ProgressDisplay(Console(file=io.StringIO()), [*LTE, *DSL], 0)


def end(display: ProgressDisplay, run: Run, seconds: float) -> None:
    row = replace(ROW, network=run.network, run=run.number, seconds=seconds)
    display.ends(run, row, given_up=False)


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
    display.ends(LTE[0], rejected("gate: it is", seconds=10.0), given_up=False)
    assert display.time_left() == "60 s left"
    display.ends(LTE[0], rejected("gate: it is", attempt=2, seconds=10.0), given_up=True)
    assert display.time_left() == "50 s left"


def test_a_clock_says_when_it_will_be_done() -> None:
    then = datetime.now().astimezone() + timedelta(days=1)
    assert clock_in(86_400).startswith(then.strftime("on %a %d %b at "))
    output = io.StringIO()
    display = ProgressDisplay(Console(file=output, width=300), LTE, 0)
    end(display, LTE[0], 200_000)
    assert re.search(r"4 d 15 h left, done on \w{3} \d\d \w{3} at \d\d:\d\d$", output.getvalue().rstrip())
