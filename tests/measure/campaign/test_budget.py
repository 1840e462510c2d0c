"""A campaign with a budget ends in time, between two blocks, and can be resumed later."""

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest
from factories import ROW, campaign_document
from rich.console import Console

from base.errors import EyelevelError
from dataset.plan import never_enough
from eyelevel.measuring import carry_out
from eyelevel.measuring_options import MeasuringOptions
from measure.campaign.budget import Budget, read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.engine import PlannedRuns, measure
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results, opened
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

# The time of each load in these tests (s).
LOAD_S = 10.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("60m", 3600), ("1.5h", 5400), ("2h15m", 8100), ("1m30s", 90)]
)
def test_budgets_are_read(text: str, seconds: float) -> None:
    assert read_budget(text) == seconds


@pytest.mark.parametrize("text", ["60", "1h30", "30m1h", "-5m", "m", ""])
def test_a_budget_that_says_no_unit_is_refused(text: str) -> None:
    with pytest.raises(EyelevelError, match=r"90s, 60m, 1\.5h or 2h15m, not"):
        read_budget(text)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def budget(self, seconds: float) -> Budget:
        return Budget.of(seconds, lambda: self.now_s)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    known_networks, known_protocols = networks.load(), protocols.load()
    return Campaign(
        folder=tmp_path / "try",
        sites={"a": site, "b": site},
        networks={name: known_networks[name] for name in ("dsl", "lte")},
        protocols={name: known_protocols[name] for name in ("tcp", "quic")},
        runs=3,
        seed=1,
    )


@pytest.fixture
def results(campaign: Campaign) -> Iterator[Results]:
    with opened(campaign.folder, campaign_document()) as results:
        yield results


def measured_blocks(work: PlannedRuns, results: Results, clock: Clock) -> int:
    """Make all runs that `work` yields, each in LOAD_S; return the number of blocks."""
    blocks = 0
    for block in takewhile(work.may_begin, work.open_blocks(never_enough)):
        blocks += 1
        for run in block.settings:
            clock.now_s += LOAD_S
            place = f"runs/{run.site}/{run.network}/{run.protocol}/{run.number}-1"
            of = replace(ROW, site=run.site, network=run.network, protocol=run.protocol, run=run.number)
            results.keep(replace(of, folder=place, block=block.number, seconds=LOAD_S))
    return blocks


def test_a_campaign_ends_within_its_budget_between_two_blocks(
    campaign: Campaign, results: Results, clock: Clock
) -> None:
    seconds = 9 * LOAD_S  # four blocks of two loads, and half a block
    work = PlannedRuns(campaign, results, clock.budget(seconds))
    assert measured_blocks(work, results, clock) == 4
    assert work.is_out_of_time
    assert clock.now_s - 1000 <= seconds
    assert set(Counter((row.site, row.network, row.run) for row in results.rows).values()) == {2}


def test_a_campaign_goes_on_after_its_budget_until_nothing_is_open(
    campaign: Campaign, results: Results, clock: Clock
) -> None:
    measured_blocks(PlannedRuns(campaign, results, clock.budget(9 * LOAD_S)), results, clock)
    work = PlannedRuns(campaign, results)
    assert measured_blocks(work, results, clock) == 12 - 4
    assert not work.is_out_of_time
    assert work.open_runs() == []


def test_a_budget_for_less_than_a_block_begins_none(campaign: Campaign, results: Results, clock: Clock) -> None:
    work = PlannedRuns(campaign, results, clock.budget(1))
    assert measured_blocks(work, results, clock) == 0
    assert work.is_out_of_time
    assert len(work.open_runs()) == 24


def test_a_block_that_has_waited_begins_only_if_it_still_ends_in_time(
    campaign: Campaign, results: Results, clock: Clock
) -> None:
    measured_blocks(PlannedRuns(replace(campaign, runs=1), results), results, clock)
    work = PlannedRuns(campaign, results, clock.budget(3 * LOAD_S))
    first, second, *_ = work.open_blocks(never_enough)
    assert work.may_begin(first) and work.may_begin(second)
    clock.now_s += 2 * LOAD_S
    assert not work.may_begin(second)
    assert work.is_out_of_time
    clock.now_s -= 2 * LOAD_S
    assert not work.may_begin(first), "none begins after one that did not fit"


def test_runs_that_are_not_needed_are_not_told_as_open_when_the_budget_is_used_up(
    campaign: Campaign, results: Results, clock: Clock
) -> None:
    work = PlannedRuns(campaign, results, clock.budget(1))
    assert not any(map(work.may_begin, work.open_blocks(lambda _: [("a", "dsl")])))
    # Two sites on two networks: three of the four cells are open, over two protocols, with three runs each.
    assert work.runs_beyond_budget() == 3 * 2 * 3


def test_a_campaign_with_nothing_to_measure_says_why_and_what_would_measure_more(
    campaign: Campaign, results: Results, clock: Clock, tmp_path: Path
) -> None:
    cells = [(site, network) for site in campaign.sites for network in campaign.networks]
    work = PlannedRuns(campaign, results)
    assert work.why_nothing(never_enough) == ""
    assert work.why_nothing(lambda _: cells) == (
        "nothing is measured: every network has enough runs; to measure more, give a fixed number of runs as another "
        "campaign (RUNS, CAMPAIGN) or other networks (NET)"
    )
    measured_blocks(work, results, clock)
    nothing = (
        "nothing is measured: no planned run is left; to measure more, give a larger number of runs (RUNS) or other "
    )
    assert work.why_nothing(never_enough) == f"{nothing}networks (NET)"
    output = io.StringIO()
    empty = Campaign(tmp_path / "empty", {}, {}, {}, runs=1, seed=1)
    assert measure(empty, partial(ProgressDisplay, Console(file=output, width=200))) == 0
    assert output.getvalue() == f"{nothing}networks (NET)\n"


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_budget_too_small_for_validation_and_a_block_is_refused_before_validation(
    campaign: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(file=io.StringIO())
    with pytest.raises(EyelevelError, match="too small for validation and the first runs; give at least ") as raised:
        carry_out(campaign, MeasuringOptions("again", budget_s=60.0, after_s=40.0), console)
    least_s = read_budget(str(raised.value).rpartition("=")[2])
    # Two networks and two protocols, the first block, and afterwards.
    assert least_s > 2 * 15 + 2 * 50 + 2 * 5 + 40
    assert not campaign.folder.exists()
    with pytest.raises(EyelevelError, match="too small for the first runs; give at least BUDGET=1m"):
        carry_out(campaign, MeasuringOptions("again", budget_s=5.0, validate=False), console)


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_campaign_without_open_runs_validates_nothing_starts_no_program_and_waits_for_nobody(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it is not needed")

    for name in ("validate_pending", "require_programs", "measuring_alone"):
        monkeypatch.setattr(f"eyelevel.measuring.{name}", refuse)
    output = io.StringIO()
    carry_out(replace(campaign, sites={}), MeasuringOptions("again"), Console(file=output, width=200))
    assert output.getvalue().startswith("nothing is measured: no planned run is left")


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_missing_program_is_said_before_the_wait_for_another_measurement(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(*_: object) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr("eyelevel.measuring.measuring_alone", wait)
    monkeypatch.setattr(Campaign, "further_programs", lambda _: {"/a/program/of/the/user": "", "nobodys": "-v"})
    with pytest.raises(EyelevelError, match=r"^the program nobodys is not installed; run 'make setup'$"):
        carry_out(campaign, MeasuringOptions("again"), Console(file=io.StringIO()))


def test_a_campaign_that_ends_within_its_budget_leaves_nothing_open(
    campaign: Campaign, results: Results, clock: Clock
) -> None:
    work = PlannedRuns(campaign, results, clock.budget(1e6))
    assert measured_blocks(work, results, clock) == 12
    assert work.runs_beyond_budget() == 0
