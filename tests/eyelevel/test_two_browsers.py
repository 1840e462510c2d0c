"""Real loads by each browser over TCP and over QUIC, with the same evidence; the gates that reject other behaviour; and
Firefox's own sandbox."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import light_campaign, reason_against_page, run_of_each
from support.processes import awaited_descendants, still_there

from base.portable import as_argument
from browsers.browsertime.configuration import IDLE_LIMIT_MS, READINESS
from browsers.contract import NAME_NOT_RESOLVED
from browsers.registry import all_browsers
from dataset.metrics import METRICS
from dataset.run_files import FILM_LOG, LOG, REPLAY_EVIDENCE, REPLAY_LOG, REQUEST_LOG
from dataset.table import PROCESSOR_COLUMNS, PROCESSOR_WAIT, Row, read_document, read_rows
from measure.campaign.campaign import Campaign
from measure.campaign.method import PAGES, is_made
from measure.run.evidence import Evidence, page_requests, read_evidence
from measure.run.load import load
from measure.run.setting import Circumstances, Loading, Setting
from measure.run.visit_spec import VisitSpec
from record.demo import generate
from record.site import Site, write_site
from replay import ReplaySpec, run
from servers.registry import require_served
from tuning import networks, protocols
from tuning.hops import Hop
from tuning.networks import Network

# Both files of this group look at the same campaign.
pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="light")]

NETWORK = networks.load()["lte"]
PROTOCOLS = {protocol.name: protocol for protocol in require_served(protocols.load().values())}
VERSIONS = {"tcp": "h2", "quic": "h3"}
BROWSERS = [
    pytest.param("chromium", marks=pytest.mark.needs_browser),
    pytest.param("firefox", marks=pytest.mark.needs_firefox),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site(generate("demo-light"), tmp_path_factory.mktemp("site") / "demo-light")


@pytest.fixture(scope="module", params=BROWSERS)
def campaign(request: pytest.FixtureRequest, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One run over each transport in the browser."""
    if request.param == "chromium":
        return light_campaign(tmp_path_factory.getbasetemp())
    return run_of_each(site, tmp_path_factory.mktemp("results") / str(request.param), str(request.param))


@pytest.fixture
def rows(campaign: Campaign) -> dict[str, Row]:
    """The valid run, by protocol."""
    rows = {row.protocol: row for row in read_rows(campaign.folder) if row.valid}
    assert sorted(rows) == sorted(VERSIONS), [row.reason for row in read_rows(campaign.folder)]
    return rows


def test_every_request_went_to_the_site_over_the_protocol_alone(
    campaign: Campaign, rows: dict[str, Row], site: Site
) -> None:
    for name, version in VERSIONS.items():
        folder = campaign.folder / rows[name].folder
        evidence = read_evidence(folder)
        assert set(evidence.har_protocols) == {version}
        sent = [request for request in evidence.requests if request.protocol]
        assert {request.protocol for request in sent} == {version}
        assert {request.address for request in sent} == set(site.servers)
        # The servers' logs and the browser's agree.
        at_servers = [request.url for request in page_requests(folder / REQUEST_LOG, evidence.requests)]
        assert sorted(at_servers) == sorted(request.url for request in sent if not request.by_browser)


def test_no_connection_of_tcp_is_asked_for_beside_quic(campaign: Campaign, rows: dict[str, Row], site: Site) -> None:
    syns = {name: read_evidence(campaign.folder / rows[name].folder).tcp_syns for name in VERSIONS}
    assert syns["quic"] == 0
    assert syns["tcp"] is not None and syns["tcp"] >= len(site.servers)


def test_nothing_of_the_browsers_own_is_sent_but_for_the_pages_icon(
    campaign: Campaign, rows: dict[str, Row], site: Site
) -> None:
    for row in rows.values():
        evidence = read_evidence(campaign.folder / row.folder)
        by_browser = [request for request in evidence.requests if request.by_browser]
        assert {request.url for request in by_browser if request.protocol} <= {f"{site.url}favicon.ico"}
        assert {request.error for request in by_browser if not request.protocol} <= {NAME_NOT_RESOLVED, None}


def test_a_navigation_begins_when_browser_and_film_are_ready(campaign: Campaign, rows: dict[str, Row]) -> None:
    for row in rows.values():
        ready = json.loads((campaign.folder / row.folder / READINESS).read_text())
        assert ready["browser"]["is_idle"] or ready["browser"]["waited_ms"] >= IDLE_LIMIT_MS
        assert ready["film"]["waited_ms"] > 0


def test_the_film_shows_the_page_alone(campaign: Campaign, rows: dict[str, Row]) -> None:
    for row in rows.values():
        evidence = read_evidence(campaign.folder / row.folder)
        assert evidence.film_size == (1366, 768)
        assert (
            evidence.film
            and evidence.film.blank_after
            and evidence.film.orange_ms > 0
            and evidence.film_missed_pixels == 0
        )


def test_the_processor_times_of_its_parts_are_kept(campaign: Campaign, rows: dict[str, Row]) -> None:
    for row in rows.values():
        assert row.readings["browser_cpu_ms"] and row.readings["renderer_cpu_ms"]
        assert None not in [row.readings[name] for name in (*PROCESSOR_COLUMNS, PROCESSOR_WAIT)]


def test_a_browser_gives_the_metrics_that_documents_say_it_does(campaign: Campaign, rows: dict[str, Row]) -> None:
    of_chromium = {
        "tbt",
        "cls",
        "connections",
        "servers_contacted",
        "content_bytes",
        "goodput_mbps",
        "down_utilisation",
        "up_utilisation",
    }
    for protocol, row in rows.items():
        missing = {metric.name for metric in METRICS if row.metrics[metric.name] is None}
        if campaign.loading.browser == "firefox":
            assert missing == of_chromium
        else:
            assert missing == ({"up_utilisation"} if protocol == "tcp" else set())


def test_versions_and_switches_are_kept(campaign: Campaign) -> None:
    document = read_document(campaign.folder)
    browser = all_browsers()[campaign.loading.browser]
    assert document and set(browser.programs) <= set(document.versions)
    kept = document.settings.browser
    assert {**kept, **json.loads(json.dumps(browser.settings())), "name": browser.name} == kept


# Loads a page like `measure.run.visit`, after a change.
VISIT = """
import sys
import browsers.firefox_browser
from measure.run import visit
exec(sys.argv[1])
visit.main(sys.argv[2])
"""


def visit(site: Site, protocol: str, folder: Path, change: str) -> None:
    """Load the page in Firefox after the statement `change`; the files of the load are in `folder`."""
    used = PROTOCOLS[protocol]
    folder.mkdir()
    spec = VisitSpec(site.folder, used, (), 200.0, folder, film=False, browser="firefox")
    replay = ReplaySpec(site.folder, NETWORK, used, folder / REQUEST_LOG)
    with (folder / REPLAY_EVIDENCE).open("w") as file:
        json.dump(run(replay, [sys.executable, "-c", VISIT, change, as_argument(spec)]).evidence, file)


TCP_BESIDE = """
import socket
genuine = visit.run_browsertime
def other(*arguments):
    with socket.socket() as attempt:
        attempt.setblocking(False)
        attempt.connect_ex((SERVER, 443))
        return genuine(*arguments)
visit.run_browsertime = other
"""


@pytest.mark.needs_firefox
@pytest.mark.parametrize(
    ("served", "change", "gate"),
    [
        # While the page loads, another program opens a TCP connection to one of its servers.
        ("quic", TCP_BESIDE, "tcp_beside_quic"),
        # The servers speak only HTTP/2, while the setting claims HTTP/3.
        ("tcp", "pass", "wrong_protocol"),
    ],
)
def test_a_load_that_used_something_else_does_not_count(
    site: Site, tmp_path: Path, served: str, change: str, gate: str
) -> None:
    visit(site, served, tmp_path / "load", change.replace("SERVER", repr(next(iter(site.servers)))))
    setting = Setting(site, NETWORK, PROTOCOLS["quic"], Loading(filmed=False, browser="firefox"))
    reason = reason_against_page(read_evidence(tmp_path / "load", filmed=False), setting)
    assert reason and reason.gate == gate, reason


@pytest.mark.needs_firefox
@pytest.mark.needs_quinn
def test_firefox_loads_a_page_over_http3_through_a_proxy_of_connect_udp(site: Site, tmp_path: Path) -> None:
    hop = Hop("masque", min_rtt_ms=20)
    network = Network("tunnel", min_rtt_ms=40, up_mbps=10, down_mbps=20, queue_ms=100, hop=hop)
    loading = Loading(filmed=False, quiet_ms=500, limit_s=200, browser="firefox")
    setting = Setting(site, network, PROTOCOLS["quic"], loading)
    assert load(setting, tmp_path) is None, (tmp_path / REPLAY_LOG).read_text()
    evidence = read_evidence(tmp_path, filmed=False)
    assert reason_against_page(evidence, setting) is None
    # All of the page was requested from the servers, each through a separate tunnel.
    assert {request.protocol for request in evidence.requests if request.status} == {"h3"}
    sent = [request.url for request in evidence.requests if request.status and not request.by_browser]
    assert sorted(request.url for request in page_requests(tmp_path / REQUEST_LOG, evidence.requests)) == sorted(sent)
    account = json.loads((tmp_path / REPLAY_EVIDENCE).read_text())["hop"]
    assert (account["packets_beside"], account["tcp_requests"]) == (0, 0)
    assert 1 <= account["connections"] < account["tunnels"] >= len(site.servers)
    assert account["datagrams_too_long"] == 0
    # If Firefox had used TCP, the load would not count.
    assert named_gate(replace(evidence, tcp_syns=1), setting) == "tcp_beside_quic"


def named_gate(evidence: Evidence, setting: Setting) -> str | None:
    reason = reason_against_page(evidence, setting)
    return reason.gate if reason else None


# Browsertime runs this instead of a URL: it queries the kernel and Firefox itself on how Firefox's processes are
# confined.
SANDBOX = """
import { mkdirSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
export default async function (context, commands) {
  const driver = context.selenium.driver;
  await commands.navigate(process.env.EYELEVEL_RETURN_URL);
  const processes = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).map((pid) => {
    const status = Object.fromEntries(
      readFileSync(`/proc/${pid}/status`, "utf8").split("\\n").map((line) => line.split(":\\t"))
    );
    // What Firefox's fork server makes has all words in one.
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split(/[\\0 ]/).filter((word) => word);
    return { command, filters: Number(status.Seccomp_filters), mode: status.Seccomp, privileges: status.NoNewPrivs };
  });
  await driver.setContext("chrome");
  const about = await driver.executeScript(
    "const { Troubleshoot } = ChromeUtils.importESModule('resource://gre/modules/Troubleshoot.sys.mjs');" +
    "return Troubleshoot.snapshot().then((all) => all.sandbox);"
  );
  await driver.setContext("content");
  mkdirSync("video");
  writeFileSync("video/1.mp4", JSON.stringify({ processes, about }));
}
"""


@pytest.mark.needs_firefox
def test_firefoxs_own_sandbox_is_on_within_the_jail(site: Site, tmp_path: Path) -> None:
    script = tmp_path / "script.mjs"
    script.write_text(SANDBOX)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    change = (
        f"genuine = visit.run_browsertime; script = {str(script)!r}; from pathlib import Path\n"
        "def other(target, configuration, environment, changes, readable, *rest):\n"
        "    return genuine(script, configuration, environment, changes, [*readable, Path(script)], *rest)\n"
        "visit.run_browsertime = other"
    )
    visit(site, "tcp", tmp_path / "load", change)
    assert (tmp_path / "load" / FILM_LOG).exists(), (tmp_path / "load" / LOG).read_text()
    outcome: dict[str, Any] = json.loads((tmp_path / "load" / FILM_LOG).read_text())
    firefox = [one for one in outcome["processes"] if one["command"] and one["command"][0].endswith("/firefox-esr")]
    (parent,) = (one for one in firefox if "-contentproc" not in one["command"])
    contents = [one for one in firefox if one["command"][-1] == "tab"]
    # The jail itself filters system calls; pages' processes have a second filter, and another root.
    assert contents, firefox
    assert all(one["mode"] == "2" and one["privileges"] == "1" for one in contents)
    assert all(one["filters"] > parent["filters"] for one in contents)
    assert outcome["about"]["contentSandboxLevel"] == outcome["about"]["effectiveContentSandboxLevel"] > 0
    assert outcome["about"]["hasSeccompBPF"] and outcome["about"]["hasUserNamespaces"]


@pytest.mark.needs_firefox
@pytest.mark.parametrize("victim", ["firefox-esr", "geckodriver", "node"])
def test_nothing_stays_behind_of_a_load_of_which_a_process_is_killed(site: Site, victim: str, tmp_path: Path) -> None:
    """Neither processes nor a profile's folder remain: they are in the replay's own namespaces and file system."""
    folder = tmp_path / "1-1"
    folder.mkdir()
    loading = Loading(filmed=False, quiet_ms=500, limit_s=200, browser="firefox")
    setting = Setting(site, NETWORK, PROTOCOLS["quic"], loading)
    one = PAGES.prepare(setting, None, folder)
    assert one
    with one:
        below = awaited_descendants(os.getpid(), lambda names: {"firefox-esr", "Web Content", victim} <= {*names})
        os.kill(next(pid for pid, name in below if name == victim), signal.SIGKILL)
        PAGES.make(setting, Circumstances(1, "here"), folder, preparation=one)
    assert is_made(folder)
    assert still_there([pid for pid, _ in below]) == []
