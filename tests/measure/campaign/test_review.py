"""Verdicts of a person and of gates are kept and followed, and each run still counts once."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import pytest
from factories import ROW, rejected
from support.axe import accessible
from support.browser import Browser

from base.errors import EyelevelError
from base.places import PROJECT
from base.structure import structured
from dataset.metrics import in_words
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, Row, Run, read_rows
from dataset.verdicts import VERDICTS, Verdict, add_verdict, read_verdicts
from eyelevel import simulate
from measure.campaign.results import Results, followed, opened
from measure.campaign.review import Review, handler
from measure.campaign.status import last_rejections, status, troubles

SECOND = replace(ROW, attempt=2, folder="runs/s/lte/tcp/1-2")
REJECTED = rejected("request_failed: it did")


def document() -> CampaignDocument:
    settings = {
        "seed": 1,
        "runs": 1,
        "repeats": 2,
        "sites": {"s": {}},
        "networks": {"lte": {}},
        "protocols": {"tcp": {}},
    }
    return CampaignDocument(structured(settings, CampaignSettings, ""))


@contextmanager
def campaign(folder: Path, *rows: Row) -> Iterator[Results]:
    with opened(folder, document()) as results:
        results.extend_plan([(Run("s", "lte", "tcp", 1),)])
        for row in rows:
            if row.folder not in {known.folder for known in results.rows}:
                results.keep(row)
        yield results


def verdict(row: Row, *, valid: bool, by: str = "review") -> Verdict:
    return Verdict(row.folder, valid, "because", by, "now", row.valid, str(row.reason or ""))


def test_a_rejected_run_is_to_be_made_again_and_its_row_says_why(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", ROW) as results:
        results.decide(verdict(ROW, valid=False))
        assert not results.is_valid(ROW.of)
    assert [(row.valid, str(row.reason)) for row in read_rows(tmp_path / "c")] == [(False, "because")]
    with campaign(tmp_path / "c", SECOND) as results:
        assert results.is_valid(ROW.of)


def test_a_verdict_of_another_process_is_followed(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", REJECTED) as results:
        Review(tmp_path / "c").decide(ROW.folder, valid=True, reason="looks fine")
        assert not results.is_valid(ROW.of)
        results.follow_verdicts()
        assert results.is_valid(ROW.of)
    assert str(read_rows(tmp_path / "c")[0].reason) == "accepted: looks fine"


def test_a_run_never_counts_twice(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", REJECTED, SECOND):
        pass
    with pytest.raises(EyelevelError, match="another attempt at s lte tcp run 1 counts"):
        Review(tmp_path / "c").decide(ROW.folder, valid=True, reason="looks fine")
    # Another attempt may succeed before the campaign learns of the decision.
    rows = followed([REJECTED, SECOND], [verdict(REJECTED, valid=True)])
    assert [row.valid for row in rows] == [False, True]
    rows = followed([REJECTED, SECOND], [verdict(REJECTED, valid=True), verdict(SECOND, valid=False)])
    assert [row.valid for row in rows] == [True, False]


def test_the_last_word_holds_and_a_torn_one_is_none(tmp_path: Path) -> None:
    add_verdict(tmp_path, verdict(ROW, valid=False))
    with (tmp_path / VERDICTS).open("a") as file:
        file.write(json.dumps({"folder": ROW.folder})[:-3])
    assert len(read_verdicts(tmp_path)) == 1
    add_verdict(tmp_path, verdict(ROW, valid=True))
    assert [said.valid for said in read_verdicts(tmp_path)] == [False, True]
    assert followed([ROW], read_verdicts(tmp_path))[0].valid


Page = tuple[HTTPConnection, Review]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The review of a campaign with a rejected and a valid attempt, to which tests send requests like a browser's."""
    with campaign(tmp_path / "c", rejected("film_unclean: <b>orange</b>"), SECOND):
        pass
    (tmp_path / "c" / ROW.folder).mkdir(parents=True)
    (tmp_path / "c" / ROW.folder / "strip.jpg").write_bytes(b"strip")
    (tmp_path / "c" / ROW.folder / "netlog.json.gz").write_bytes(b"not to be shown")
    review = Review(tmp_path / "c")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(review, tmp_path))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield HTTPConnection("127.0.0.1", server.server_address[1]), review
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(page: Page, path: str, body: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
    """The status and the text of the review's answer, for a path below its address."""
    connection, review = page
    return answer(connection, f"{review.base}{path}", body, **headers)


def answer(
    connection: HTTPConnection, path: str, body: dict[str, str] | None = None, **headers: str
) -> tuple[int, str]:
    connection.request("POST" if body else "GET", path, urlencode(body) if body else None, headers)
    response = connection.getresponse()
    return response.status, response.read().decode()


def test_flagged_runs_come_first_with_their_reason_and_strip(page: Page) -> None:
    assert ask(page, "")[0] == 200
    code, text = ask(page, "setting?site=s&network=lte&protocol=tcp")
    assert code == 200
    assert text.index("attempt 1") < text.index("attempt 2")
    assert "film_unclean: &lt;b&gt;orange&lt;/b&gt;" in text
    (strip,) = re.findall('<img class="strip" .*?src="(.*?)"', text)
    assert answer(page[0], strip) == (200, "strip")
    assert re.findall('(?:action|href)="(.*?)"', text) == [
        "#runs", page[1].base, f"{page[1].base}looked", *[f"{page[1].base}verdict"] * 2
    ]  # fmt: skip


@pytest.mark.needs_axe
@pytest.mark.parametrize("path", ["", "setting?site=s&network=lte&protocol=tcp"])
def test_everybody_can_read_the_pages(page: Page, browser: Browser, path: str) -> None:
    connection, review = page
    assert accessible(browser, f"http://{connection.host}:{connection.port}{review.base}{path}") == []


@pytest.mark.parametrize(
    "path", [f"strip/{ROW.folder}/netlog.json.gz", "strip/../../etc", "strip", "film/..", "nothing", "setting?site=s"]
)
def test_nothing_else_is_shown(page: Page, path: str) -> None:
    assert ask(page, path)[0] == 404


def test_the_status_says_what_is_wrong(page: Page) -> None:
    _, review = page
    assert troubles(status(review.folder), review.folder) == ["1 of 2 attempts rejected (film_unclean)"]
    assert last_rejections(review.rows(), ["film_unclean"]) == ["last by film_unclean: s lte tcp run 1: <b>orange</b>"]
    review.decide(SECOND.folder, valid=False, reason="an empty page")
    wrong = troubles(status(review.folder), review.folder)
    assert wrong[-1] == "it has open runs and is not running"


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("si", 811.6, "SI 812 ms"),
        ("content_bytes", 601_234.0, "content 601,234 bytes"),
        ("goodput_mbps", 11.23, "goodput 11.2 Mbit/s"),
        ("down_utilisation", 0.4312, "downlink used 43.1 %"),
        ("up_utilisation", None, "uplink used unknown"),
        ("of_tomorrow", 0.5, "of_tomorrow 0.5"),
    ],
)
def test_metrics_have_their_labels_and_units(metric: str, value: float | None, words: str) -> None:
    assert in_words(metric, value) == words


def test_a_decision_is_kept_with_its_reason(page: Page) -> None:
    _, review = page
    decision = {"folder": SECOND.folder, "valid": "false", "reason": "an empty page"}
    assert ask(page, "verdict", decision)[0] == 303
    assert [row.valid for row in read_rows(review.folder)] == [False, False]
    assert str(read_rows(review.folder)[1].reason) == "review: an empty page"
    assert ask(page, "verdict", {**decision, "reason": " "})[0] == 409
    assert ask(page, "setting", decision)[0] == 404


def test_a_person_who_looked_at_the_films_is_kept_and_changes_nothing_else(page: Page) -> None:
    _, review = page
    review.who = "Ada"
    before = read_rows(review.folder)
    assert "looked at 0 of 1 runs that count" in ask(page, "")[1]
    setting = {name: getattr(SECOND, name) for name in ("site", "network", "protocol", "browser")}
    for _ in range(2):
        assert ask(page, "looked", setting)[0] == 303
    (kept,) = read_verdicts(review.folder)
    assert (kept.folder, kept.valid, kept.by, kept.who) == (SECOND.folder, True, "review", "Ada")
    assert followed(before, [kept]) == before
    # A later comparison with other runs may still reject it.
    with opened(review.folder, document()) as results:
        assert results.first_verdict(SECOND.folder) is None
        by_gate = verdict(SECOND, valid=False, by="request_missed")
        assert [row.valid for row in followed(before, [by_gate, kept])] == [False, False]
    assert "looked at 1 of 1 runs that count" in ask(page, "")[1]
    assert f"{kept.at}, Ada: accepted: looked at" in ask(page, f"setting?{urlencode(setting)}")[1]
    assert ask(page, "looked", {"site": "s"})[0] == 400


def test_who_does_not_know_the_address_sees_and_decides_nothing(page: Page) -> None:
    """Other users of this machine and other websites can connect to the port, but learn and change nothing."""
    connection, review = page
    decision = {"folder": SECOND.folder, "valid": "false", "reason": "x"}
    for base in ("/", "/guessed/", f"{review.base[:-2]}/", "/\u00fc/", review.base.upper()):
        path = quote(base, safe="/")
        assert answer(connection, path)[0] == 404
        assert answer(connection, f"{path}setting?site=s&network=lte&protocol=tcp")[0] == 404
        assert answer(connection, f"{path}strip/{ROW.folder}")[0] == 404
        assert answer(connection, f"{path}verdict", decision)[0] == 404
    assert ask(page, "", Host="rebound.example")[0] == 403
    assert read_verdicts(review.folder) == []


def test_no_page_of_others_can_show_the_review_in_a_frame(page: Page) -> None:
    connection, review = page
    for path in (review.base, "/nothing"):
        connection.request("GET", path)
        with connection.getresponse() as response:
            assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
            assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("length", ["abc", "-5", "99999999999999999999", "\u00b2", ""])
def test_a_form_that_is_none_is_refused(page: Page, length: str) -> None:
    connection, review = page
    connection.putrequest("POST", f"{review.base}verdict")
    connection.putheader("Content-Length", length.encode())
    connection.endheaders(b"valid=false")
    assert connection.getresponse().status == 400
    connection.close()


def test_a_form_that_is_not_text_is_refused(page: Page) -> None:
    connection, review = page
    connection.request("POST", f"{review.base}verdict", b"folder=\xff\xfe&valid=false")
    assert connection.getresponse().status == 400


@pytest.mark.parametrize("folder", ["../victim", "runs/../../victim", "runs/s/lte/tcp/..", "/etc", "runs"])
def test_results_of_others_whose_attempts_lie_elsewhere_are_refused(tmp_path: Path, folder: str) -> None:
    with campaign(tmp_path / "c", ROW):
        pass
    table = tmp_path / "c" / "runs.csv"
    table.write_text(table.read_text().replace(ROW.folder, folder))
    with pytest.raises(EyelevelError, match=rf"runs.csv is broken: '{folder}' is not a folder of an attempt"):
        Review(tmp_path / "c")


def test_links_in_results_of_others_show_nothing_from_elsewhere(page: Page, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "strip.jpg").write_bytes(b"secret")
    (tmp_path / "victim" / "film-small.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    attempt = page[1].folder / SECOND.folder
    attempt.symlink_to(tmp_path / "victim")
    assert [ask(page, f"{kind}/{SECOND.folder}")[0] for kind in ("strip", "film")] == [404, 404]
    attempt.unlink()
    attempt.mkdir()
    for name in ("strip.jpg", "film-small.mp4"):
        (attempt / name).symlink_to(tmp_path / "victim" / name)
    assert [ask(page, f"{kind}/{SECOND.folder}")[0] for kind in ("strip", "film")] == [404, 404]
    # A list of files that FFmpeg would read.
    (attempt / "film-small.mp4").unlink()
    (attempt / "film.mp4").write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n{tmp_path}/victim/film-small.mp4\n")
    assert ask(page, f"film/{SECOND.folder}")[0] == 404
    (attempt / "film-small.mp4").write_bytes(b"\0\0\0\x20ftypisom")
    assert ask(page, f"film/{SECOND.folder}")[0] == 200


def test_a_review_that_is_told_to_end_leaves_no_files(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", ROW):
        pass
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "eyelevel", "review", "--no-open", str(tmp_path / "c")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as review:
        assert review.stdout
        url, _, _ = review.stdout.readline().partition(" ")
        assert len(urlsplit(url).path) > 40
        assert [path.name.startswith("eyelevel-review-") for path in (tmp_path / "temporary").iterdir()] == [True]
        review.terminate()
        assert review.wait() == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_status_tells_how_a_campaign_stands(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", REJECTED):
        state = status(tmp_path / "c")
        assert state.running
        assert (state.planned, state.done, state.given_up, len(state.open_runs)) == (1, 0, 0, 1)
    with campaign(tmp_path / "c", SECOND):
        pass
    state = status(tmp_path / "c")
    assert not state.running
    assert (state.planned, state.done, len(state.open_runs)) == (1, 1, 0)
    with pytest.raises(EyelevelError, match="is not a campaign"):
        status(tmp_path)


def test_a_simulated_campaign_has_a_status(tmp_path: Path) -> None:
    simulate.write(tmp_path / "c", simulate.Truth(sites=1, runs=2))
    state = status(tmp_path / "c")
    assert len(state.rows) > 0 and not state.running
