"""The web as deployed: servers speak HTTP/2 and HTTP/3; a fresh browser discovers HTTP/3, and a returning one knows
it."""

from pathlib import Path

import pytest
from support.campaigns import reason_against_page

from dataset.run_files import REQUEST_LOG
from dataset.table import Row, Run
from measure.campaign.method import PAGES
from measure.run.evidence import read_evidence
from measure.run.gates import is_of_machine
from measure.run.load import Observers, load
from measure.run.setting import Circumstances, Loading, Setting
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from servers.registry import require_served
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads]

DSL = networks.load()["dsl"]
# This runs next to the servers: from then on they receive nothing over UDP, and senders get no error. (The kernel
# applies rules in order, by default the rule for local addresses first, so this moves that rule behind the new one.)
WITHOUT_UDP = """
ip rule add pref 10 lookup local && ip rule del pref 0 && ip rule add pref 5 ipproto udp dport 443 blackhole &&
echo ready && exec sleep infinity
"""


# The page requests from two hosts, and sends the second half of the requests when the first has been answered. If there
# is HTTP/3 to find, it waits until it has got something over it: on a busy machine, its connection may be late.
ASK = """
const ask = at => Promise.all([...Array(30).keys()].map(n => fetch(`https://${n % 2 ? "a" : "b"}.example/${at + n}`)));
"""
FIND = """
const found = async () => {
  for (let tries = 0; tries < 50; tries++) {
    await (await fetch("/1", { cache: "no-store" })).text();
    if (performance.getEntriesByName(`${origin}/1`).at(-1)?.nextHopProtocol == "h3") return;
    await new Promise(done => setTimeout(done, 50));
  }
};
ask(0).then(found).then(() => ask(30));
"""
WITHOUT_FINDING = "ask(0).then(() => ask(30));"
REQUESTS = 61
# On a busy machine, the page may wait for a processor between its requests.
LOADING = Loading(filmed=False, quiet_ms=5000)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return site_in(tmp_path_factory.mktemp("sites") / "many", FIND)


def site_in(folder: Path, then: str) -> Site:
    """A site whose page can `ask`, and runs the script `then`."""
    headers = (("Access-Control-Allow-Origin", "*"), ("Content-Type", "text/html"))
    text = f"<!doctype html><title>Many</title><script>{ASK}{then}</script>"
    page = Exchange("GET", "https://a.example/", Response(200, "OK", headers, text.encode()), "192.0.2.1")
    parts = [
        Exchange("GET", f"https://{host}.example/{n}", Response(200, "OK", headers, bytes(2000)), address)
        for n in range(REQUESTS - 1)
        for host, address in [("a", "192.0.2.1") if n % 2 else ("b", "192.0.2.2")]
    ]
    recording = Recording(page.url, (page, *parts), {"tool": "test"})
    return write_site(recording, folder)


def loaded(site: Site, protocol: str, folder: Path) -> tuple[Row, list[str | None]]:
    """The row of a load, and the version of HTTP for each request of the page, in order."""
    (settings,) = require_served([protocols.load()[protocol]])
    setting = Setting(site, DSL, settings, LOADING)
    run_folder = folder / "runs" / "1"
    run_folder.mkdir(parents=True)
    PAGES.make(setting, Circumstances(1, "here"), run_folder)
    row = PAGES.judge(setting, Run(site.name, DSL.name, protocol, 1), 1, run_folder, folder)
    requests = PAGES.evidence(setting, run_folder).requests
    # Both servers logged their answers.
    assert len((run_folder / REQUEST_LOG).read_text().splitlines()) >= row.requests >= REQUESTS
    return row, [request.protocol for request in requests if not request.by_browser and request.protocol]


def test_a_fresh_browser_finds_http3_while_it_loads_the_page(site: Site, tmp_path: Path) -> None:
    row, versions = loaded(site, "deployed-cold", tmp_path)
    assert row.valid or is_of_machine(row.reason), row.reason  # other tests keep the machine busy
    assert versions[0] == "h2" and set(versions) == {"h2", "h3"}
    # Requests sent before the first response cannot know of HTTP/3.
    assert row.h3_request_share == pytest.approx(versions.count("h3") / len(versions), abs=0.02)
    assert row.h3_byte_share is not None and 0 < row.h3_byte_share < 1
    assert row.missed == 0


@pytest.mark.parametrize("protocol", ["deployed-warm", "deployed-dns"])
def test_a_browser_that_knows_servers_before_it_asks_uses_http3_from_its_first_request_on(
    site: Site, protocol: str, tmp_path: Path
) -> None:
    row, versions = loaded(site, protocol, tmp_path)
    assert row.valid or is_of_machine(row.reason), row.reason  # other tests keep the machine busy
    assert versions[0] == "h3"
    assert row.h3_request_share is not None and row.h3_request_share > 0.9
    assert row.missed == 0


def test_where_no_udp_gets_through_all_goes_over_http2_and_that_counts(tmp_path: Path) -> None:
    (settings,) = require_served([protocols.load()["deployed-warm"]])
    setting = Setting(site_in(tmp_path / "site", WITHOUT_FINDING), DSL, settings, LOADING)
    (tmp_path / "load").mkdir()
    assert load(setting, tmp_path / "load", observers=Observers(monitor=("sh", "-c", WITHOUT_UDP))) is None
    evidence = read_evidence(tmp_path / "load", filmed=False)
    assert reason_against_page(evidence, setting) is None
    assert evidence.har_protocols.keys() == {"h2"}
    assert evidence.har_protocols["h2"] >= REQUESTS  # the browser asks for an icon, too
