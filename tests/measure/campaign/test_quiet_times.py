"""The effect of a shorter quiet time is computed from existing runs; runs with different quiet times are never
compared."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from factories import ROW, campaign_document, rejected

from analysis import runs
from base.errors import EyelevelError
from dataset.run_files import REQUEST_LOG, TIMES, TIMINGS, VISUAL
from dataset.table import RUNS, Row, header, lines, write_document
from eyelevel.commands.quiet_times import main
from measure.campaign.quiet_times import changed_metrics, run_changes, sufficient_ms, summary

START_MS = 1_800_000_000_000
KINDS = {"REQUEST_ALIVE": 0, "URL_REQUEST_START_JOB": 1, "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": 2}
HOST = "https://a.example"
# The page, a picture, and a script that requests another picture after a pause: (path, began, ended), in ms.
QUICK = (("/", 0, 300), ("/a.png", 310, 900))
LATE = (*QUICK, ("/b.js", 910, 2000), ("/c.png", 4300, 4500))
PROGRESS = "0=0, 400=40, 1000=80"


def make_run(
    folder: Path,
    row: Row,
    requests: Any = QUICK,
    progress: str = PROGRESS,
    in_frame: int | None = None,
) -> None:
    """Write the evidence of a run with these `requests`; the one at index `in_frame` is from a frame of another
    site."""
    run = folder / row.folder
    run.mkdir(parents=True)
    page = {"pageinfo": {"navigationStartTime": START_MS}, "timings": {"loadEventEnd": 1000}}
    (run / TIMINGS).write_text(json.dumps([{"browserScripts": [page]}]))
    (run / VISUAL).write_text(json.dumps({"metrics": {"progress": progress}}))
    (run / TIMES).write_text(json.dumps({"browsertime_end": START_MS / 1000 + 9}))
    events = []
    for source, (path, began, ended) in enumerate(requests):
        initiator = "null" if not source else "https://ads.example" if source == in_frame else HOST
        common = {"source": {"id": source}}
        parameters = {
            "method": "GET",
            "url": HOST + path,
            "request_type": "main frame" if not source else "other",
            "initiator": initiator,
        }
        events.append({**common, "type": 1, "phase": 1, "time": str(began), "params": parameters})
        events.append({**common, "type": 2, "time": str(began)})
        if ended is not None:
            events.append({**common, "type": 0, "phase": 2, "time": str(ended)})
    constants = {"logEventTypes": KINDS, "netError": {}, "timeTickOffset": START_MS}
    (run / "netlog.json.gz").write_bytes(gzip.compress(json.dumps({"constants": constants, "events": events}).encode()))
    log = [f"exact\tGET\t{HOST}{path}\ta.example/{number}" for number, (path, _, _) in enumerate(requests)]
    (run / REQUEST_LOG).write_text("\n".join(log))


def campaign(folder: Path, rows: list[Row], **network: Any) -> Path:
    """A campaign on lte with `rows`, whose pages had to be quiet for 3 s."""
    folder.mkdir(parents=True, exist_ok=True)
    networks = {"lte": {"up_mbps": 2.8, **network}}
    write_document(folder, campaign_document(browser={"quiet_ms": 3000}, networks=networks))
    (folder / RUNS).write_text(header() + lines(rows))
    return folder


def rows_of(folder: Path, *candidates_ms: int) -> pd.DataFrame:
    return run_changes([folder], candidates_ms).table.set_index("quiet_ms")


def test_what_comes_after_a_shorter_wait_is_late(tmp_path: Path) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW, LATE, "0=0, 400=40, 1000=80, 4600=100")
    table = rows_of(folder, 500, 1500, 2000, 2500)
    # The load event is at 1000, responses end at 2000 and 4500; the page is first queried at 2000.
    assert list(table["stop_ms"]) == [2500, 3500, 4000, 7000]
    assert list(table["late_responses"]) == [1, 1, 1, 0]
    assert list(table["is_late_change"]) == [True, True, True, False]
    assert list(table["lvc"]) == [-3600, -3600, -3600, 0]
    assert set(table["pause_ms"]) == {2500} and set(table["lag_ms"]) == {9000 - 7500}
    assert sufficient_ms(table.reset_index()) is None


def test_a_wait_that_would_have_changed_nothing_must_be_longer_than_the_longest_pause(tmp_path: Path) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW, (*QUICK, ("/b.js", 910, 1700)))
    table = rows_of(folder, 1000, 1500)
    assert not table[["late_responses", "is_late_change"]].to_numpy().any()
    assert set(table["pause_ms"]) == {700}
    assert sufficient_ms(table.reset_index()) == 1500
    (numbers,) = summary(table.reset_index().query("quiet_ms == 1500")).to_dict("records")
    assert (numbers["runs"], numbers["late_responses"], numbers["si_worst"]) == (1, 0, 0)


def test_a_page_that_never_stops_asking_ends_all_the_same(tmp_path: Path) -> None:
    polls = tuple((f"/{number}", 900 + 500 * number, 1000 + 500 * number) for number in range(30))
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW, (*QUICK, *polls, ("/slow", 950, None)))
    table = rows_of(folder, 1000)
    assert list(table["stop_ms"]) == [1000 + 5 * 1000]
    assert list(table["open_requests"]) == [1]


@pytest.mark.parametrize(
    ("requests", "stops_ms"),
    [
        pytest.param((*QUICK, ("/b.js", 910, 4000)), [5000, 5500], id="a slow answer"),
        pytest.param((*QUICK, ("/b.js", 910, 4000), ("/c.js", 4100, 6800)), [6000, 8300], id="one that asks for more"),
        pytest.param((*QUICK, ("/b.js", 910, None)), [6000, 8500], id="given up on"),
    ],
)
def test_an_answer_that_is_under_way_is_waited_for(tmp_path: Path, requests: Any, stops_ms: list[int]) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW, requests)
    browser = {"quiet_ms": 3000, "waits_for_open_requests": True}
    write_document(folder, campaign_document(browser=browser, networks={"lte": {"up_mbps": 2.8}}))
    assert list(rows_of(folder, 1000, 1500)["stop_ms"]) == stops_ms
    # Older runs did not wait for answers under way.
    make_run(older := campaign(tmp_path / "older", [ROW]), ROW, requests)
    assert list(rows_of(older, 1000, 1500)["stop_ms"]) == [2000, 2500]


def test_the_page_does_not_wait_for_what_frames_of_other_sites_ask_for(tmp_path: Path) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW, LATE, in_frame=3)
    table = rows_of(folder, 2500)
    assert list(table["stop_ms"]) == [4500] and list(table["late_responses"]) == [0]


def test_metrics_of_a_shorter_film_are_measured_by_its_own_last_picture() -> None:
    # The shorter film ends with the picture at 1000 ms, which is 80 % complete, and final in this film. So the picture
    # before it, at 40 %, is half complete.
    steps = ((0.0, 0), (400.0, 40), (1000.0, 80), (3000.0, 100))
    changes = changed_metrics(steps, 2000)
    assert changes["lvc"] == changes["vc85"] == 1000 - 3000
    assert changes["si"] == pytest.approx((400 + 600 * 0.5) - (400 + 600 * 0.6 + 2000 * 0.2))
    assert changed_metrics(steps, 3000) == {"lvc": 0, "vc85": 0, "si": 0}


def test_gates_are_asked_again(tmp_path: Path) -> None:
    rows = [replace(ROW, run=number, folder=f"runs/s/lte/tcp/{number}-1") for number in range(1, 8)]
    many = tuple((f"/{number}.png", 4300, 4400) for number in range(5))
    # One of the seven valid runs sends requests late that the others send at once.
    late_url = "request_failed: ERR_CONNECTION_RESET: https://a.example/late.png"
    rows.append(rejected(late_url, run=8, folder="runs/s/lte/tcp/8-1"))
    folder = campaign(tmp_path / "c", rows)
    for row in rows[:6]:
        make_run(folder, row, (*QUICK, *((path, 400, 500) for path, _, _ in many)))
    make_run(folder, rows[6], (*QUICK, ("/b.js", 910, 2000), *many))
    make_run(folder, rows[7], (*QUICK, ("/b.js", 910, 2000), ("/late.png", 4300, 4400)))
    table = run_changes([folder], [1000]).table
    assert table.loc[table["is_rejected"], "run"].tolist() == [7]
    assert table.loc[table["is_accepted"], "run"].tolist() == [8]
    assert sufficient_ms(table) is None


def test_the_command_tells_it_by_network_and_leaves_the_campaign_as_it_is(tmp_path: Path) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = CliRunner().invoke(main, [str(folder), "--into", str(tmp_path / "runs.csv")], catch_exceptions=False)
    assert done.exit_code == 0 and "1 run of 1 site, ended after 3000 ms" in done.output
    assert "1000 ms would have changed nothing" in done.output
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + 3
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_what_cannot_be_told_is_one_line(tmp_path: Path) -> None:
    make_run(folder := campaign(tmp_path / "c", [ROW]), ROW)
    for arguments, message in (
        ([str(folder), "--quiet-ms", "1s"], "whole numbers of ms"),
        ([str(folder), "--quiet-ms", "3000"], "no valid run had a longer quiet time"),
    ):
        with pytest.raises(EyelevelError, match=message):
            CliRunner().invoke(main, arguments, catch_exceptions=False)
    other = campaign(tmp_path / "d", [], down_mbps=1)
    with pytest.raises(EyelevelError, match=r"lte of .* is another one"):
        run_changes([folder, other], [1000])
    (unfilmed := tmp_path / "unfilmed").mkdir()
    write_document(unfilmed, campaign_document(filmed=False))
    with pytest.raises(EyelevelError, match="unfilmed were not filmed"):
        run_changes([unfilmed], [1000])


def test_an_attempt_without_its_evidence_is_left_out_by_name(tmp_path: Path) -> None:
    second = replace(ROW, run=2, folder="runs/s/lte/tcp/2-1")
    folder = campaign(tmp_path / "c", [ROW, second])
    make_run(folder, ROW)
    make_run(folder, second)
    (folder / second.folder / VISUAL).unlink()
    done = CliRunner().invoke(main, [str(folder)], catch_exceptions=False)
    assert (done.exit_code, done.stderr.count("left out: ")) == (0, 1)
    assert f"left out: {folder / second.folder / VISUAL} cannot be read" in done.stderr
    assert "1 run of 1 site" in done.stdout
    (folder / ROW.folder / TIMINGS).write_text("[]")
    with pytest.raises(EyelevelError, match="no attempt has the evidence"):
        CliRunner().invoke(main, [str(folder)], catch_exceptions=False)


def test_runs_of_two_quiet_times_are_not_compared(tmp_path: Path) -> None:
    second = replace(ROW, run=2, folder="runs/s/lte/tcp/2-1")
    for quiet_ms in (None, 3000.0):
        assert len(runs.load(campaign(tmp_path / f"{quiet_ms}", [ROW, replace(second, quiet_ms=quiet_ms)])).runs) == 2
    with pytest.raises(EyelevelError, match="on lte, runs ended after 1500 ms without a request and after 3000 ms"):
        runs.load(campaign(tmp_path / "mixed", [replace(ROW, quiet_ms=3000.0), replace(second, quiet_ms=1500.0)]))
    sound = campaign(tmp_path / "sound", [replace(ROW, quiet_ms=1500.0)], quiet_ms=1500)
    assert runs.load(sound).runs["quiet_ms"].tolist() == [1500]
