"""A script makes pages send the same requests on every load: it is inserted only into documents, and may run there.

Pages see the script's times and numbers, programs that measure see the real ones.
"""

import gzip
import json
import math
import time
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dataset.run_files import HAR, REPLAY_EVIDENCE, TIMINGS
from measure.campaign.campaign import Campaign
from measure.campaign.results import changes
from measure.run.evidence import Evidence, read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from measure.sites.completeness import requested_urls
from record.http1 import Headers, Response
from record.site import Exchange, Recording, Site, write_site
from replay.repeatable import is_worker, with_scripts, worker_with_script, workers_named
from tuning import networks, protocols

SCRIPT = b"(function () {})(1);"
PUT = b"<script>" + SCRIPT + b"</script>"
HASH = "'sha256-"


def html(body: bytes, *headers: tuple[str, str]) -> Response:
    return Response(200, "OK", (("Content-Type", "text/html; charset=utf-8"), *headers), body)


@pytest.mark.parametrize(
    ("document", "changed"),
    [
        (b"<!doctype html><html><head><title>", b"<!doctype html><html><head>" + PUT + b"<title>"),
        (b"<HTML><HEAD lang=en><title>", b"<HTML><HEAD lang=en>" + PUT + b"<title>"),
        (b"\n<!-- hello -->\n<html><body>", b"\n<!-- hello -->\n<html>" + PUT + b"<body>"),
        (b"<!DOCTYPE html><p>", b"<!DOCTYPE html>" + PUT + b"<p>"),
        (b'<?xml version="1.0" ?>\n<!DOCTYPE html><html>', b'<?xml version="1.0" ?>\n<!DOCTYPE html><html>' + PUT),
    ],
)
def test_the_script_comes_first_in_a_document(document: bytes, changed: bytes) -> None:
    got = with_scripts(html(document), [SCRIPT])
    assert got is not None
    assert got.body == changed


@pytest.mark.parametrize("body", [b"", b'{"html": "<html>"}', b"<div>a fragment</div>", b"var a = '<html>';"])
def test_what_is_only_called_html_stays_as_it_is(body: bytes) -> None:
    assert with_scripts(html(body), [SCRIPT]) is None


def test_other_types_and_broken_encodings_stay_as_they_are() -> None:
    assert with_scripts(Response(200, "OK", (("Content-Type", "text/plain"),), b"<html>"), [SCRIPT]) is None
    assert with_scripts(html(b"<html>", ("Content-Encoding", "gzip")), [SCRIPT]) is None


def test_an_encoded_document_stays_encoded() -> None:
    got = with_scripts(html(gzip.compress(b"<html><head>"), ("Content-Encoding", "gzip")), [SCRIPT])
    assert got is not None
    assert gzip.decompress(got.body) == b"<html><head>" + PUT


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("default-src 'self'", f"default-src 'self'; script-src 'self' {HASH}"),
        ("script-src a.example; img-src *", f"script-src a.example {HASH}; img-src *"),
        ("script-src 'none'", f"script-src {HASH}"),
        ("script-src 'nonce-x' 'unsafe-inline'", f"script-src 'nonce-x' 'unsafe-inline' {HASH}"),
        ("script-src 'unsafe-inline'", "script-src 'unsafe-inline'"),
        ("img-src 'self'", "img-src 'self'"),
        ("script-src a, script-src b", f"script-src a {HASH},script-src b {HASH}"),
    ],
)
def test_policies_allow_the_script_and_nothing_else_more(policy: str, allowed: str) -> None:
    headers: Headers = (("Content-Security-Policy", policy),)
    got = with_scripts(html(b"<html>", *headers), [SCRIPT])
    assert got is not None
    value = got.header("content-security-policy") or ""
    digest = value.partition(HASH)[2].partition("'")[0] + "'" if HASH in value else ""
    assert value.replace(f"{HASH}{digest}", HASH) == allowed


@pytest.mark.parametrize(
    "text",
    [
        b"new Worker('/js/a.js?v=2')",
        b'new Worker(new URL("./a.js", import.meta.url), {type: "module"})',
        b"new SharedWorker ( `a.js` )",
        b"<script>navigator.serviceWorker.register('https://a.example/a.js')",
    ],
)
def test_the_script_of_a_worker_is_known_by_who_names_it(text: bytes) -> None:
    named = workers_named(html(text))
    assert is_worker("https://a.example/js/a.js?v=3", named)
    assert not is_worker("https://a.example/js/b.js", named)


def test_the_script_of_a_worker_is_known_by_its_name() -> None:
    urls = ("/pdf.worker.min.js", "/sw.js", "/firebase-messaging-sw.js", "/ServiceWorker.js?1", "/swiper.js", "/app.js")
    assert [is_worker(f"https://a.example{url}", ()) for url in urls] == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (b"a();", SCRIPT + b"\na();"),
        (b"/* x */ // y\n 'use strict'; a();", b'"use strict";' + SCRIPT + b"\n/* x */ // y\n 'use strict'; a();"),
        (b"\xef\xbb\xbfa();", b"\xef\xbb\xbf" + SCRIPT + b"\na();"),
    ],
)
def test_the_script_comes_first_in_a_worker_which_stays_strict(text: bytes, changed: bytes) -> None:
    packed = Response(200, "", (("Content-Encoding", "gzip"),), gzip.compress(text))
    got = worker_with_script(packed, SCRIPT)
    assert got is not None
    assert gzip.decompress(got.body) == changed
    assert worker_with_script(packed._replace(body=b"no gzip"), SCRIPT) is None


RECORDED_AT_S = 1_500_000_000
BULK_BYTES = 1_500_000
# The time (ms) that may pass on a busy machine between the beginning of a navigation and its first request, with which
# the HAR begins. (On an idle one it is 10 ms.) The HAR's load event may be later than the page's by any time.
LATE_MS = 5000
# A worker reports to its server what it sees.
TELL = """fetch(new URL("/told?" + new URLSearchParams({
    who: WHO, number: Math.random(), identifier: crypto.randomUUID(), now: Date.now(),
}), "https://a.example/"));"""
# Workers, by the ways to make them.
WORKERS = """
const address = text => URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
const text = who => TELL.replace("WHO", JSON.stringify(who));
const blob = address(text("blob"));
new Worker(blob);
URL.revokeObjectURL(blob);
new Worker(address(text("blob module")), {type: "module"});
new SharedWorker(address(text("blob shared")));
new Worker("data:text/javascript," + encodeURIComponent(text("data")));
new Worker("data:text/javascript;base64," + btoa(text("base64")));
new Worker(address("new Worker(URL.createObjectURL(new Blob([" + JSON.stringify(text("nested")) + "])))"));
new Worker("/classic.js");
new Worker(new URL("/module.js", location), {type: "module"});
new SharedWorker("/shared.js");
navigator.serviceWorker.register("/service.js");
"""
OF_FILES = {"classic", "module", "shared", "service"}
ALL_WORKERS = {*OF_FILES, "blob", "blob module", "blob shared", "data", "base64", "nested"}
PAGE = b"""<!doctype html><html><head><title>Telling</title></head><body><script async src=/bulk></script><script>
function told(who, of) {
    const url = new URL("/told", location);
    const tell = (name, value) => url.searchParams.set(name, value);
    tell("who", who);
    tell("number", of.Math.random());
    tell("identifier", of.crypto.randomUUID());
    tell("bytes", of.crypto.getRandomValues(new Uint32Array(2)));
    tell("now", of.Date.now());
    tell("year", new of.Date().getFullYear());
    tell("modified", of.document.lastModified);
    tell("origin", of.performance.timeOrigin);
    tell("loaded", of.performance.timing.loadEventStart - of.performance.timing.navigationStart);
    tell("timing", JSON.stringify(of.performance.timing));
    tell("rtt", of.navigator.connection.rtt);
    return url;
}
// How long an animation of 300 ms, as the clock tells the time, really takes: the shorter time of two, since a busy
// machine may hold one up.
async function animation(next) {
    const times = [];
    for (let number = 0; number < 2; number++) {
        const began = Date.now(), reallyBegan = performance.now();
        while (Date.now() - began < 300) await new Promise(next);
        times.push(performance.now() - reallyBegan);
    }
    return Math.min(...times);
}
onload = () => setTimeout(async () => {
    const frames = await animation(done => requestAnimationFrame(done));
    const ticks = await animation(done => setTimeout(done, 13));
    fetch("/animated?" + new URLSearchParams({frames, ticks}));
    fetch(told('page', window));
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.contentDocument.write("<p>");
    fetch(told('frame', frame.contentWindow));
});
</script>"""
WITH_WORKERS = f"<script>const TELL = {json.dumps(TELL)}; addEventListener('load', () => {{ {WORKERS} }});</script>"


@dataclass(frozen=True)
class Load:
    """One load.

    It contains the reports of the page, its frame and its workers; Browsertime's timings; the load event according to
    the browser (ms from the navigation); the duration of animations of 300 ms; and the replay's record of the script.
    """

    reports: dict[str, dict[str, str]]
    workers: dict[str, dict[str, str]]
    timings: dict[str, Any]
    plt: float | None
    loaded_ms: float
    animated_ms: dict[str, float]
    script: dict[str, Any] | None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A page that reports everything that changes from load to load to its server, as do its workers, and takes a while
    to load."""
    date = ("Date", formatdate(RECORDED_AT_S, usegmt=True))
    page = Exchange("GET", "https://a.example/", html(PAGE + WITH_WORKERS.encode(), date), "192.0.2.1")
    bulk = replace(page, url=f"{page.url}bulk", response=Response(200, "OK", (), b"//".ljust(BULK_BYTES, b"x")))
    # A worker with a data URL has a unique origin.
    answer = Response(204, "", (("Access-Control-Allow-Origin", "*"),), b"")
    reports = [replace(page, url=f"{page.url}{path}", response=answer) for path in ("told", "animated")]
    javascript = (("Content-Type", "text/javascript"),)
    workers = [
        replace(page, url=f"{page.url}{who}.js", response=Response(200, "", javascript, text.encode()))
        for who in sorted(OF_FILES)
        if (text := TELL.replace("WHO", json.dumps(who)))
    ]
    folder = tmp_path_factory.mktemp("sites") / "telling"
    return write_site(Recording(page.url, (page, bulk, *reports, *workers), {"tool": "test"}), folder)


@pytest.fixture(scope="module")
def loads(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Load]:
    """Two loads with the script and one without, on DSL."""
    choices = {"one": True, "other": True, "as recorded": False}
    return {name: load_once(site, tmp_path_factory.mktemp("load"), choice) for name, choice in choices.items()}


def load_once(site: Site, folder: Path, repeatable: bool) -> Load:
    dsl, tcp = networks.load()["dsl"], protocols.load()["tcp"]
    assert load(Setting(site, dsl, tcp, Loading(repeatable, filmed=False, quiet_ms=5000)), folder) is None
    evidence = read_evidence(folder, filmed=False)
    requests = [(parts.path, dict(parse_qsl(parts.query))) for parts in map(urlsplit, _urls_of(folder, evidence))]
    reports = {values["who"]: values for path, values in requests if path == "/told"}
    page = json.loads((folder / TIMINGS).read_text())[0]["browserScripts"][0]
    har = json.loads(gzip.decompress((folder / HAR).read_bytes()))
    return Load(
        reports={who: values for who, values in reports.items() if who not in ALL_WORKERS},
        workers={who: values for who, values in reports.items() if who in ALL_WORKERS},
        timings=page["timings"],
        plt=evidence.plt,
        loaded_ms=har["log"]["pages"][0]["pageTimings"]["onLoad"],
        animated_ms={way: float(took) for path, ways in requests if path == "/animated" for way, took in ways.items()},
        script=json.loads((folder / REPLAY_EVIDENCE).read_text())["scripts"].get("repeatable"),
    )


def transfer_ms() -> float:
    """The least time that the page's largest file takes."""
    return BULK_BYTES * 8 / (networks.load()["dsl"].down_mbps or math.nan) / 1e3


def _urls_of(folder: Path, evidence: Evidence) -> list[str]:
    return [request.url for request in requested_urls(folder, evidence.requests)]


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_animations_take_as_long_as_they_should(loads: dict[str, Load]) -> None:
    for name, seen in loads.items():
        assert set(seen.animated_ms) == {"frames", "ticks"}
        for took_ms in seen.animated_ms.values():
            assert 200 < took_ms < 1500, name


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_page_and_the_frames_it_writes_tell_the_same_on_every_load(loads: dict[str, Load]) -> None:
    assert set(loads["one"].reports) == {"page", "frame"}
    assert loads["one"].reports == loads["other"].reports
    for values in loads["one"].reports.values():
        assert values["now"] == str(RECORDED_AT_S * 1000)
        assert values["year"] == "2017"
        assert "2017" in values["modified"]
        assert values["origin"] == str(json.loads(values["timing"])["navigationStart"])
    numbers = [values[name] for values in loads["one"].reports.values() for name in ("number", "identifier", "bytes")]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_workers_of_all_kinds_tell_the_same_on_every_load(loads: dict[str, Load]) -> None:
    one = loads["one"].workers
    assert set(one) == ALL_WORKERS
    assert one == loads["other"].workers
    assert {values["now"] for values in one.values()} == {str(RECORDED_AT_S * 1000)}


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_without_the_script_a_page_tells_the_truth(loads: dict[str, Load]) -> None:
    as_recorded, one = loads["as recorded"].reports["page"], loads["one"].reports["page"]
    assert abs(float(as_recorded["now"]) / 1000 - time.time()) < 3600
    assert transfer_ms() < float(as_recorded["loaded"]) < loads["as recorded"].loaded_ms + LATE_MS
    assert all(as_recorded[name] != one[name] for name in ("number", "identifier", "bytes", "loaded", "modified"))


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_the_evidence_tells_whether_pages_had_the_script(loads: dict[str, Load]) -> None:
    assert loads["as recorded"].script is None
    script = loads["one"].script
    assert script and (script["documents"], script["workers"]) == (1, len(OF_FILES))
    assert len(script["script_sha256"]) == 64


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_those_who_measure_get_the_true_times(loads: dict[str, Load]) -> None:
    """The load event in the HAR comes from the browser itself, outside the page (from the DevTools protocol)."""
    for name, seen in loads.items():
        assert seen.plt is not None and transfer_ms() < seen.plt < seen.loaded_ms + LATE_MS, name
        # Browsertime reads the page's timing by the old and the new interface; the script changes the old one for
        # pages.
        assert seen.timings["loadEventEnd"] == pytest.approx(seen.timings["navigationTiming"]["loadEventEnd"], abs=2)
    assert float(loads["one"].reports["page"]["loaded"]) < transfer_ms(), "the page itself got something else"


def test_a_campaign_keeps_to_the_choice_it_was_begun_with(site: Site, tmp_path: Path) -> None:
    tcp = protocols.load()["tcp"]
    usual = Campaign(tmp_path, {site.name: site}, {}, {tcp.name: tcp}, runs=1, seed=1)
    as_recorded = replace(usual, loading=Loading(repeatable=False))
    assert usual.document().settings.repeatable is True, "unless told"
    assert as_recorded.document().settings.repeatable is False
    assert changes(usual.document(), as_recorded.document()) == ["settings/repeatable was True, is False"]
