"""One real load over TCP and one over QUIC of a demo site and of a real recording, as a campaign of one run."""

import html
import io
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console
from support.campaigns import light_campaign, run_of_each
from support.material import recording_path
from support.processes import awaited_descendants

from analysis.report.first_answer import report
from analysis.report.waterfalls.loads import read_load
from analysis.report.waterfalls.page import STRIP_PICTURES
from analysis.runs import load, records, rows_of
from base.files import read_json
from base.places import PROJECT, tool
from browsers.browsertime.configuration import IDLE_LIMIT_MS, READINESS
from browsers.chromium.netlog import read_netlog
from dataset.har import comparable_url, navigated_s
from dataset.run_files import FILM, TIMES, VISUAL
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT, read_rows, require_document
from eyelevel.commands.waterfall import main as waterfall
from measure.campaign.campaign import Campaign
from measure.campaign.quiet_times import read_run
from measure.run.evidence import read_evidence
from record.formats import read_recording
from record.site import Site, write_site
from tuning import networks

# Both files of this group look at the same campaign.
pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="light")]

LTE = networks.load()["lte"]

# The fewest round trips until the first byte of a page can arrive. For TCP: TCP's handshake, TLS 1.3's, and the
# request; for QUIC: its handshake, and the request. Names are resolved without the link, so this takes no round trip.
ROUND_TRIPS = {"tcp": 3, "quic": 2}


@pytest.fixture(scope="module", params=["demo-light", pytest.param("www.yelp.com", marks=pytest.mark.needs_corpus)])
def campaign(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One run over stock TCP and one over stock QUIC, on LTE, of a demo site or of a real recording."""
    if request.param == "demo-light":
        return light_campaign(tmp_path_factory.getbasetemp())
    recording = read_recording(recording_path(f"mahimahi/{request.param}"))
    site = write_site(recording, tmp_path_factory.mktemp("sites") / str(request.param))
    return run_of_each(site, tmp_path_factory.mktemp("results") / site.name)


@pytest.fixture(scope="module")
def site(campaign: Campaign) -> Site:
    (site,) = campaign.sites.values()
    return site


@pytest.fixture(scope="module")
def valid(campaign: Campaign) -> pd.DataFrame:
    """The valid runs, by protocol."""
    runs = load(campaign.folder).runs
    return runs[runs["valid"]].set_index("protocol")


def test_each_protocol_has_a_run_that_counts(campaign: Campaign, valid: pd.DataFrame) -> None:
    assert sorted(valid.index) == sorted(ROUND_TRIPS), load(campaign.folder).runs["reason"].tolist()


@pytest.mark.parametrize(("protocol", "version"), [("tcp", "h2"), ("quic", "h3")])
def test_every_request_used_the_protocol(campaign: Campaign, valid: pd.DataFrame, protocol: str, version: str) -> None:
    evidence = read_evidence(campaign.folder / valid.loc[protocol, "folder"])
    assert set(evidence.har_protocols) == {version}
    assert {request.protocol for request in evidence.requests if request.protocol} == {version}
    assert evidence.har_protocols[version] > 1


def test_no_time_is_below_the_physical_minimum(valid: pd.DataFrame) -> None:
    for protocol, round_trips in ROUND_TRIPS.items():
        run, minimum_ms = valid.loc[protocol], round_trips * LTE.min_rtt_ms
        assert minimum_ms < run["plt"] < 30_000
        assert minimum_ms < run["fvc"] <= run["vc85"] <= run["lvc"]
        assert run["fvc"] <= run["si"] <= run["lvc"]


def test_goodput_is_content_over_the_page_load_time_and_the_link_carries_more(valid: pd.DataFrame) -> None:
    for protocol, run in valid.iterrows():
        assert 0 < run["goodput_mbps"] < run["down_utilisation"] * LTE.down_mbps < LTE.down_mbps
        assert (0 < run["up_utilisation"] < 1) if protocol == "quic" else pd.isna(run["up_utilisation"])


def test_nearly_all_that_was_asked_for_was_recorded(site: Site, valid: pd.DataFrame) -> None:
    for _, run in valid.iterrows():
        assert run["requests"] == run["served"] + run["missed"]
        assert run["served"] > 0.9 * run["requests"]
        assert run["exchanges"] > 0.8 * len(site.exchanges)


def test_the_processor_s_share_is_kept_of_each_part(valid: pd.DataFrame) -> None:
    for _, run in valid.iterrows():
        shares = run[[*PROCESSOR_COLUMNS]].astype(float)
        assert (shares > 0).all(), shares
        duration_ms = max(run["plt"], run["lvc"])
        # The samples may include up to one sampling interval in addition to the load.
        assert shares.sum() < (os.cpu_count() or 1) * (duration_ms + 300)
        assert run[PROCESSOR_WAIT] > 0


def test_a_navigation_begins_when_browser_and_film_are_ready(campaign: Campaign, valid: pd.DataFrame) -> None:
    for name in valid["folder"]:
        ready = json.loads((campaign.folder / name / READINESS).read_text())
        assert ready["browser"]["is_idle"] or ready["browser"]["waited_ms"] >= IDLE_LIMIT_MS
        assert ready["film"]["waited_ms"] > 0
        # The film shows the orange from its first picture on, until the page is navigated to.
        document = json.loads((campaign.folder / name / VISUAL).read_text())
        start, recorder = document["start"], document["recorder"]
        assert start["orange_ms"] == pytest.approx(1000 * document["zero_s"] + start["blank_ms"], abs=0.01)
        assert recorder["missed_pixels"] == 0 and recorder["pictures"] > 3


def test_a_film_does_not_end_before_the_quiet_time_of_its_network(campaign: Campaign) -> None:
    document = require_document(campaign.folder)
    for row in [row for row in read_rows(campaign.folder) if row.valid]:
        run = read_run(campaign.folder, row, document)
        assert run.quiet_ms == LTE.quiet_ms == 2000
        times = read_json(run.folder / TIMES)
        assert run.stop_ms(2000) < run.ended_ms - 1000 * (times["browsertime_end"] - times["over"])


@pytest.mark.parametrize("protocol", ROUND_TRIPS)
def test_the_film_plays(campaign: Campaign, valid: pd.DataFrame, protocol: str) -> None:
    folder = campaign.folder / valid.loc[protocol, "folder"]
    document = json.loads((folder / VISUAL).read_text())
    # The film extends from the orange beyond the last change.
    assert _length_s(folder / FILM) > document["zero_s"] + valid.loc[protocol, "lvc"] / 1000


def test_the_answer_is_printed(campaign: Campaign, valid: pd.DataFrame) -> None:
    printed = io.StringIO()
    report(campaign.folder, Console(file=printed, width=120))
    assert f"{valid.loc['tcp', 'plt']:.0f}" in printed.getvalue()
    assert "Change against tcp" in printed.getvalue()


def test_ctrl_c_ends_a_campaign_cleanly(tmp_path: Path) -> None:
    arguments = ["--net", "lte", "--proto", "tcp", "--sites", "demo-light", "--runs", "1", "--campaign", "stopped"]
    arguments.append("--no-validate")
    command = [sys.executable, "-m", "eyelevel", "campaign", *arguments, "--results", str(tmp_path)]
    folder = tmp_path / "stopped"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=PROJECT, start_new_session=True)
    with process:
        # While the page loads: the canary's browser has no driver.
        awaited_descendants(
            process.pid, lambda names: {"chromedriver", "chromium"} <= {*names} or process.poll() is not None
        )
        assert process.poll() is None, process.communicate()[1]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "make campaign CAMPAIGN=stopped RESULTS=" in errors
    assert "Traceback" not in errors
    assert len((folder / "runs.csv").read_text().splitlines()) == 1


def _length_s(film: Path) -> float:
    """When the last frame of `film` comes, which must play without a fault (s)."""
    command: list[str | Path] = [tool("ffprobe"), "-v", "error", "-of", "csv=p=0"]
    command += ["-show_entries", "frame=pts_time", film]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return max(float(line.split(",")[0]) for line in done.stdout.split())


def test_a_waterfall_has_each_request_with_the_times_of_the_network_log(campaign: Campaign, tmp_path: Path) -> None:
    # Other tests read the campaign.
    folder = shutil.copytree(campaign.folder, tmp_path / "copy")
    done = CliRunner().invoke(waterfall, [str(folder), "--proto", "tcp,quic", "--metric", "plt"])
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.strip())
    text = html.unescape(page.read_text())
    assert all(f"The largest paint (LCP) of {letter}, at " in text for letter in "AB")
    for letter, protocol in zip("ab", ROUND_TRIPS, strict=True):
        (row,) = records(rows_of(load(folder).runs, valid=True, protocol=protocol))
        of_run = read_load(folder, row, "")
        assert (page.parent / f"{letter}-{protocol}-{of_run.folder.name}.har").read_text() == of_run.har
        assert {phase for request in of_run.requests for phase in request.spans} >= (
            {"tcp", "tls"} if protocol == "tcp" else {"quic"}
        )
        logged = {
            (request.method, comparable_url(request.url)): request
            for request in read_netlog(of_run.folder / "netlog.json.gz")
        }
        navigated = navigated_s(json.loads(of_run.har))
        ends_ms = [logged[request.method, comparable_url(request.url)].ended_s for request in of_run.requests]
        assert all(f"{request.method} {request.url}<" in text for request in of_run.requests)
        late_ms = [
            abs(1000 * (end_s - navigated) - request.end_ms)
            for end_s, request in zip(ends_ms, of_run.requests, strict=True)
            if end_s
        ]
        # Two processes log the end of a request, each when it gets a processor: on a busy machine, the two times differ
        # by tens of ms. If the logs counted from different zeros, they would differ by a large part of the load.
        assert len(late_ms) == len(of_run.requests)
        assert statistics.median(late_ms) < 0.05 * max(request.end_ms for request in of_run.requests)
    # Both films are on the page, and the page loads nothing else.
    assert text.count("data:image/jpeg") == 2 * STRIP_PICTURES
    assert not re.search(r"""(?:src|href)="(?!data:|#|[ab]-(?:tcp|quic)-1-\d+\.har")""", text)
