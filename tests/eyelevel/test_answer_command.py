"""`eyelevel answer` before and after its loads: the options, what is refused at once, and the time limit."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from statistics import mean
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from factories import ROW, with_metrics
from rich.console import Console
from support.figure_layout import draw_nothing

from analysis.hypotheses import DECLARED
from analysis.statistics.spending import LOOKS
from base.errors import EyelevelError
from base.places import ANSWER_PREFIX, PROJECT
from dataset.declaration import HYPOTHESES
from dataset.durations import mean_seconds
from dataset.plan import Enough
from dataset.table import RUNS, CampaignDocument, read_document, read_rows, write_document
from eyelevel.answer import answering
from eyelevel.answer.answering import RUN_S, affordable_runs, reported, require_same_site, stoppable
from eyelevel.answer.progress import REPORT_S
from eyelevel.answer.recording import about_servers, same_page
from eyelevel.answer.request import (
    QUESTION,
    campaign_of,
    loading_of,
    networks_of,
    runs_of,
    site_of_folder,
    target_of,
    text_of_question,
)
from eyelevel.commands.answer import main
from eyelevel.estimate import estimate
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.simulate import Truth, write
from measure.campaign.budget import Budget, budget_for, read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.engine import PlannedRuns
from measure.campaign.results import opened
from measure.run.setting import Loading
from measure.sites.completeness import FILE, Completeness, digest
from record.connections import Connection
from record.demo import generate
from record.site import Recording, Site, write_site
from tuning import networks, protocols

SITE, OVER = "site-01", ("tcp+", "quic")

NOTHING_GIVEN = {"server_rtts": None, "think_time": None}


@pytest.fixture
def begun(tmp_path: Path) -> Callable[..., Path]:
    """A function that makes a folder of results with a campaign of an answer, optionally with other hypotheses."""

    def made(hypotheses: Path = QUESTION, over: tuple[str, ...] = OVER, sites: int = 1, **settings: Any) -> Path:
        folder = write(tmp_path / "results" / f"{ANSWER_PREFIX}{SITE}", Truth(sites, ("dsl",), over, 6), hypotheses)
        document = read_document(folder)
        assert document
        write_document(folder, replace(document, settings=replace(document.settings, auto=True, **settings)))
        return folder.parent

    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A page with some data about its recorded servers."""
    return write_site(generate("demo-light"), tmp_path_factory.mktemp("sites") / "demo-light")


def campaign(folder: Path, site: Site, runs: int = 31, **changes: Any) -> Campaign:
    known, over = networks.load(), protocols.load()
    one = Campaign(folder, {site.name: site}, {"dsl": known["dsl"]}, {name: over[name] for name in OVER}, runs, 1)
    return replace(one, **changes)


# Names of sites


def test_the_site_of_a_url_has_the_name_that_was_given() -> None:
    target = target_of("https://[2001:db8::1]:8443/", "shop")
    assert target
    assert (target.name, target.url) == ("shop", "https://[2001:db8::1]:8443/")
    target = target_of("www.gnu.org/software", None)
    assert target
    assert (target.name, target.url) == ("gnu.org", "https://www.gnu.org/software")


@pytest.mark.parametrize("url", ["https://WWW.GNU.org", "http://www.gnu.org:80/", "https://user@www.gnu.org:443/#top"])
def test_a_page_is_known_again_however_its_url_is_written(url: str) -> None:
    assert same_page(url) == same_page("https://www.gnu.org/")


def test_other_pages_are_not_taken_for_the_recorded_one() -> None:
    assert same_page("https://www.gnu.org:8443/") != same_page("https://www.gnu.org/")
    assert same_page("https://www.gnu.org/software") != same_page("https://www.gnu.org/Software")


@pytest.mark.parametrize("name", ["../x", "a,b", "", ".hidden"])
def test_what_can_be_no_site_is_refused_at_once(tmp_path: Path, name: str) -> None:
    with pytest.raises(EyelevelError, match=r"is not a name for a site|name a page"):
        campaign_of(tmp_path, None, name)


# Existing campaigns


def test_a_campaign_with_another_question_is_refused_before_it_is_measured(begun: Callable[..., Path]) -> None:
    folder, document = campaign_of(begun(DECLARED), None, SITE)
    with pytest.raises(EyelevelError, match="was begun with another question"):
        text_of_question(folder, document)


def test_a_campaign_without_a_question_is_refused_before_it_is_measured(begun: Callable[..., Path]) -> None:
    folder, document = campaign_of(begun(), None, SITE)
    assert document
    with pytest.raises(EyelevelError, match="declared no hypotheses before its first run"):
        text_of_question(folder, replace(document, hypotheses={}))


def test_a_question_that_was_changed_afterwards_is_refused(begun: Callable[..., Path]) -> None:
    folder, document = campaign_of(begun(), None, SITE)
    assert text_of_question(folder, document) == QUESTION.read_text()
    (folder / HYPOTHESES).write_text(QUESTION.read_text().replace("0.05", "0.5"))
    with pytest.raises(EyelevelError, match="no longer what the campaign declared"):
        text_of_question(folder, document)


@pytest.mark.parametrize(("over", "sites"), [(("tcp", "quic"), 1), (OVER, 2), (("quic", "tcp+"), 1)])
def test_a_campaign_of_other_sites_or_protocols_is_refused(
    begun: Callable[..., Path], over: tuple[str, ...], sites: int
) -> None:
    with pytest.raises(EyelevelError, match="has other sites or protocols"):
        campaign_of(begun(over=over, sites=sites), None, SITE)


def test_a_campaign_of_another_study_is_refused(begun: Callable[..., Path]) -> None:
    results = begun()
    document = read_document(results / f"{ANSWER_PREFIX}{SITE}")
    assert document
    write_document(results / f"{ANSWER_PREFIX}{SITE}", replace(document, study={"name": "grid"}))
    with pytest.raises(EyelevelError, match="is a grid"):
        campaign_of(results, None, SITE)


def test_what_was_stopped_before_it_was_a_campaign_goes_on_by_its_name(tmp_path: Path) -> None:
    (tmp_path / f"{ANSWER_PREFIX}gnu.org").mkdir()
    folder, document = campaign_of(tmp_path, f"{ANSWER_PREFIX}gnu.org", None)
    assert (site_of_folder(folder), document) == ("gnu.org", None)
    with pytest.raises(EyelevelError, match="there is no campaign other to resume"):
        campaign_of(tmp_path, "other", None)


def test_a_campaign_keeps_its_networks_when_one_is_asked_for_beside(begun: Callable[..., Path]) -> None:
    _, document = campaign_of(begun(), None, SITE)
    assert [one.name for one in networks_of("lte,dsl", document)] == ["dsl", "lte"]
    assert [one.name for one in networks_of(None, document)] == ["dsl"]
    assert [one.name for one in networks_of(None, None)] == ["lte", "fibre"]


def test_the_number_of_runs_can_be_raised_and_not_lowered(begun: Callable[..., Path]) -> None:
    folder, document = campaign_of(begun(), None, SITE)
    assert document
    assert runs_of(None, folder, document) == (6, True)
    assert runs_of("auto", folder, document) == (6, True)
    assert runs_of("31", folder, document) == (31, True)
    with pytest.raises(EyelevelError, match="has RUNS=6, not 5; use RUNS=6 or more"):
        runs_of("5", folder, document)
    fixed = replace(document, settings=replace(document.settings, auto=False))
    assert runs_of("31", folder, fixed) == (31, False)
    with pytest.raises(EyelevelError, match="does not stop by itself"):
        runs_of("auto", folder, fixed)
    assert runs_of(None, folder, None) == (31, True)
    assert runs_of("2", folder, None) == (2, False)


@pytest.mark.slow
def test_a_site_that_was_recorded_again_is_refused_before_it_is_validated(tmp_path: Path, site: Site) -> None:
    one = campaign(tmp_path / "c", site)
    document = one.document()
    require_same_site(document, one)
    again = replace(generate("demo-light"), recorder={"tool": "another"})
    other = campaign(tmp_path / "c", write_site(again, tmp_path / "again" / "demo-light"))
    with pytest.raises(EyelevelError, match=r"demo-light was recorded again, or changed, .*CAMPAIGN=c-2"):
        require_same_site(document, other)


def test_how_servers_answer_is_kept_by_the_campaign(begun: Callable[..., Path]) -> None:
    _, document = campaign_of(begun(think_time="recorded", server_rtts="recorded-12ms"), None, SITE)
    kept = loading_of(NOTHING_GIVEN, document)
    assert (kept.think_time, str(kept.server_rtts)) == ("recorded", "recorded-12ms")
    assert loading_of(NOTHING_GIVEN, None) == Loading()
    assert loading_of({**NOTHING_GIVEN, "think_time": "off"}, document).think_time == "off"


# Time


def test_the_budget_is_spent_on_as_many_runs_as_fit_and_refused_when_none_can_decide(
    tmp_path: Path, site: Site
) -> None:
    one = campaign(tmp_path / "c", site, auto=True)
    each_s = estimate(replace(one, runs=1)).forecast.seconds
    assert affordable_runs(one, Budget.of(12.5 * each_s + 300), 300) == 12
    assert affordable_runs(one, Budget.of(1000 * each_s), 0) == 31
    least = budget_for(5 * each_s + 300)
    with pytest.raises(
        EyelevelError,
        match=rf"5 runs of each protocol, the minimum .* on dsl; give at least BUDGET={least}, .* or RUNS=4 ",
    ):
        affordable_runs(one, Budget.of(4.5 * each_s + 300), 300)
    assert affordable_runs(one, Budget.of(read_budget(least)), 300) >= 5
    fixed = replace(one, auto=False)
    assert affordable_runs(fixed, Budget.of(1.5 * each_s), 0) == 1
    with pytest.raises(EyelevelError, match=r"too small for 1 run of each protocol on dsl.*, or no BUDGET$"):
        affordable_runs(fixed, Budget.of(0.5 * each_s), 0)


def test_a_run_is_expected_to_take_what_runs_take_before_the_page_is_known() -> None:
    rows = read_rows(PROJECT / "data" / "reference")
    measured_s = mean(seconds for (_, network), seconds in mean_seconds(rows).items() if network in ("dsl", "lte"))
    assert measured_s / 1.5 < RUN_S < 1.5 * measured_s


def test_what_was_measured_before_takes_no_more_time(begun: Callable[..., Path], tmp_path: Path, site: Site) -> None:
    folder = begun() / f"{ANSWER_PREFIX}{SITE}"
    table = pd.read_csv(folder / RUNS, keep_default_na=False)
    table["valid"] = table["valid"].astype(str).str.lower()
    table.assign(site="demo-light").to_csv(folder / RUNS, index=False)
    assert estimate(campaign(folder, site, runs=6)).runs == 0
    # Each existing run took 11.5 s, according to the table, and the next one began up to a second later.
    assert 2 * 2 * 11.5 <= estimate(campaign(folder, site, runs=8)).forecast.seconds < 2 * 2 * 12.5


# Resuming


def test_a_stop_prints_the_command_that_resumes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped, stoppable("make answer NET=dsl"):
        raise KeyboardInterrupt
    assert stopped.value.code == 130
    assert "to resume: make answer NET=dsl" in capsys.readouterr().err


# Servers


def test_what_the_answer_leaves_out_of_the_recorded_servers_is_told_with_the_command_that_does_not(
    tmp_path: Path, site: Site
) -> None:
    recording = site.recording()
    start = recording.exchanges[0]
    far = next(one.recorded_ip for one in recording.exchanges if one.recorded_ip != start.recorded_ip)
    connections = (Connection(start.recorded_ip, "a.example", 20.0), Connection(far, "b.example", 75.0))
    exchanges = (replace(start, ttfb_ms=150.0), *recording.exchanges[1:])
    known = write_site(
        Recording(recording.url, exchanges, recording.recorder, connections=connections), tmp_path / "shop"
    )
    (text,) = about_servers(known, Loading(), "answer-shop")
    assert "its server took 130 ms to begin to answer and its 2 servers were up to 55 ms farther away" in text
    command = "make answer SITE=shop THINK_TIME=recorded SERVER_RTTS=recorded CAMPAIGN=answer-shop-as-recorded"
    assert command in text
    as_recorded = Loading(
        think_time="recorded",
        server_rtts=loading_of({**NOTHING_GIVEN, "server_rtts": "recorded"}, CampaignDocument()).server_rtts,
    )
    assert about_servers(known, as_recorded, "answer-shop") == []
    (text,) = about_servers(site, Loading(), "answer-demo-light")
    assert text.startswith("The recording lacks the times of its servers, so here they answer at once")


# The whole command, without loads


@pytest.fixture
def command(tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A function that calls the command on a closed site and returns its output.

    A run is only a row of a table, made at once.
    """
    one = write_site(site.recording(), tmp_path / "sites" / "demo-light")
    Completeness(digest(one), "2026-01-01T00:00:00+0000", "dsl", True, {}, {}, 1.0, (), (), {}).write(one)

    def measure_rows(
        one: Campaign, options: MeasuringOptions, console: Console, enough: Enough, when_validated: Callable[[], None]
    ) -> None:
        when_validated()
        assert options.again.startswith("make answer ") and "SITE=demo-light" in options.again.split()
        with opened(one.folder, one.document(), one.hypotheses) as results:
            budget = None if options.budget_s is None else Budget.of(options.budget_s - options.after_s)
            while True:
                # The campaign is resumed after each block.
                work = PlannedRuns(one, results, budget)
                block = next(takewhile(work.may_begin, work.open_blocks(enough)), None)
                if not block:
                    break
                for run in block.settings:
                    si = (700.0 if run.protocol == "quic" else 1000.0) + run.number % 3
                    folder = f"runs/{run.site}/{run.network}/{run.protocol}/{run.number}-1"
                    row = with_metrics(ROW, si=si, plt=si)
                    place = {name: getattr(run, name) for name in ("site", "network", "protocol")}
                    results.keep(replace(row, **place, run=run.number, block=block.number, folder=folder))
            console.print(f"{work.runs_beyond_budget()} runs are beyond the budget")

    draw_nothing(monkeypatch)  # only words are checked
    monkeypatch.setattr(answering, "require_browsing", lambda _: None)
    monkeypatch.setattr(answering, "carry_out", measure_rows)

    def call(*arguments: str, status: int = 0) -> str:
        folders = ["--sites-folder", str(tmp_path / "sites"), "--results", str(tmp_path / "results")]
        done = CliRunner().invoke(main, ["--site", "demo-light", *folders, *arguments])
        assert done.exit_code == status, done.output
        return done.output if done.exception is None or status == 0 else str(done.exception)

    return call


@pytest.fixture
def unreported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command end after its runs, without the answer and the report."""
    monkeypatch.setattr(answering, "reported", lambda *_: ("", None))


def runs_made(results: Path) -> Counter[str]:
    """How many valid runs there are on each network."""
    return Counter(row.network for row in read_rows(results / f"{ANSWER_PREFIX}demo-light") if row.valid)


@pytest.mark.slow
def test_an_answer_goes_on_with_more_runs_and_networks_and_stops_when_it_is_decided(
    command: Callable[..., str], tmp_path: Path
) -> None:
    first = command("--net", "dsl", "--runs", "1")
    assert "[1/5] record: demo-light exists" in first
    assert "[2/5] close: done on 1 January 2026" in first
    assert "[4/5] measure: demo-light on dsl, 1 run of each protocol; about " in first
    assert "on DSL (1 load of each cannot tell)." in first
    assert "next: make answer SITE=demo-light RUNS=6" in first
    again = command("--net", "lte", "--runs", "6")
    assert runs_made(tmp_path / "results") == {"dsl": 12, "lte": 12}
    assert "For demo-light, HTTP/3 in place of HTTP/2 would show the page 30.0 % sooner (300 ms; " in again
    assert "next: " not in again
    page = (tmp_path / "results" / f"{ANSWER_PREFIX}demo-light" / "answer" / "index.html").read_text()
    # Two questions, declared one after the other.
    assert "are wrong with a probability of at most 10 %" in page
    assert "with a correction of its own: LTE" in page
    assert "has RUNS=6, not 5; use RUNS=6 or more" in command("--runs", "5", status=1)


@pytest.mark.slow
@pytest.mark.usefixtures("unreported")
def test_an_answer_makes_no_more_runs_than_decide(command: Callable[..., str], tmp_path: Path) -> None:
    text = command("--net", "dsl", "--budget", "20m")
    assert runs_made(tmp_path / "results") == {"dsl": 2 * LOOKS[0]}
    assert re.search(r"demo-light on dsl, at most \d+ runs of each protocol; about .*; at most .* left, done at ", text)


@pytest.mark.slow
def test_a_budget_too_small_for_any_run_is_refused_before_the_site_is_completed(
    command: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "sites" / "demo-light" / FILE).unlink()
    small = ("--net", "dsl", "--runs", "2", "--budget", f"{REPORT_S:.0f}s")
    assert re.search(
        r"^the budget is too small for 1 run of each protocol on dsl; give at least ", command(*small, status=1)
    )
    assert not (tmp_path / "results").exists()
    of_none = ("--net", "dsl", "--budget", f"{REPORT_S:.0f}s")
    assert "5 runs of each protocol, the minimum for any verdict, on dsl" in command(*of_none, status=1)


@pytest.mark.slow
@pytest.mark.usefixtures("unreported")
def test_no_block_begins_when_the_budget_is_used_up_and_the_same_command_goes_on(
    command: Callable[..., str], tmp_path: Path
) -> None:
    command("--net", "dsl", "--runs", "1", "--budget", "10m")
    assert "2 runs are beyond the budget" in command("--net", "dsl", "--runs", "2", "--budget", f"{REPORT_S:.0f}s")
    assert runs_made(tmp_path / "results") == {"dsl": 2}
    assert "0 runs are beyond the budget" in command("--net", "dsl", "--runs", "2", "--budget", "10m")
    assert runs_made(tmp_path / "results") == {"dsl": 4}


# The end


def test_a_campaign_that_was_ended_before_its_first_run_is_answered_with_nothing(begun: Callable[..., Path]) -> None:
    folder = begun() / f"{ANSWER_PREFIX}{SITE}"
    (folder / RUNS).write_text((folder / RUNS).read_text().splitlines(keepends=True)[0])
    text, more = reported(folder, [], [])
    assert "there is no answer on HTTP/3 in place of HTTP/2: no pair of loads counts on DSL." in text
    assert more is None


def test_the_last_lines_are_the_sentence_and_its_page(begun: Callable[..., Path]) -> None:
    folder = write(begun() / "c", Truth(1, ("dsl",), OVER, 6, excluded={"quic": 1.0, "tcp+": 1.0}), QUESTION)
    text, _ = reported(folder, ["half of it"], [])
    assert text.splitlines()[1:] == [
        f"For {SITE}, there is no answer on HTTP/3 in place of HTTP/2: no pair of loads counts on DSL.",
        "The recording may not represent the site: see the warnings above and on the page.",
        str(folder / "answer" / "index.html"),
    ]
