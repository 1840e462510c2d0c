"""Pages that act by themselves while they are measured, in the real browser: which loads count, and why others do not.

Some pages navigate to another page, and are followed; others open a dialog, request a login, or are loaded a second
time.
"""

import gzip
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from dataset.metrics import METRICS
from dataset.navigation import read_navigation
from dataset.run_files import HAR
from measure.campaign.method import claim
from measure.run.evidence import Evidence, read_evidence
from measure.run.gates import GATES, reason_against
from measure.run.load import load
from measure.run.setting import Loading, Setting
from measure.sites.completeness import requested_urls
from record.http1 import Headers, Response
from record.site import Exchange, Recording, write_site
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads]

SHOP = "https://shop.example/"
# Browsers omit the dot of a host's name in TLS (RFC 6066, section 3), and keep it in the request.
DOTTED = "https://shop.example./"
WINDOW = "opens_window: the page opened a window, or the dialog for printing"
# On a busy machine, it takes a while until a page acts after its load, and until a worker that has arrived is at work.
LATER_MS = 5000
GATES_OF_LOADS = [gate for gate in GATES if gate.about_load]


@dataclass(frozen=True)
class Case:
    """The answer at the start page, and `more` at other paths.

    `reason` is the beginning of the text that says why the load does not count; "" if it counts.
    """

    head: str = ""
    reason: str = ""
    headers: Headers = ()
    status: int = 200
    more: dict[str, Response] = field(default_factory=dict)
    start: str = SHOP
    quiet_ms: int = 1000


def html(head: str = "", *headers: tuple[str, str]) -> Response:
    text = f"<!doctype html><html><head><title>Shop</title>{head}</head><body><h1>Shop</h1></body></html>"
    return Response(200, "", (("Content-Type", "text/html; charset=utf-8"), *headers), text.encode())


EMPTY = Response(204, "", (), b"")
LOGIN = Response(401, "", (("WWW-Authenticate", 'Basic realm="staging"'),), b"no")
SERVICE_WORKER = Response(
    200,
    "",
    (("Content-Type", "text/javascript"),),
    b"onactivate = event => event.waitUntil(clients.claim());"
    b"onfetch = event => event.request.url.endsWith('/made') && event.respondWith(new Response('made'));",
)
HINTS = (("Accept-CH", "Sec-CH-UA-Model"), ("Critical-CH", "Sec-CH-UA-Model"))
# Everything that a page may do and still count: its start is requested again (Critical-CH), another page is
# prerendered, a request over plain HTTP is redirected to HTTPS (HSTS), a navigation leads to an empty response, and
# requests have URLs that no server could answer. (A service worker has a separate page, since it would take part in the
# navigations of this one.)
BUSY_PAGE = """<script type=speculationrules>{"prerender": [{"urls": ["/ready", "/gone"]}]}</script>
<script>
fetch("about:blank").catch(() => 0);
addEventListener("load", async () => {
    await fetch("http://shop.example/secure", {mode: "no-cors"});
    location = "/none";
});
</script><img src="about:blank;"><img src="no-scheme:x"><img src="https://gone.example/x">"""
ANSWERED_BY_WORKER = """<script>
navigator.serviceWorker.oncontrollerchange = () => fetch("/made");
navigator.serviceWorker.register("/sw.js");
</script>"""

DSL = networks.load()["dsl"]
# The browser's network log and its pages convert the time of one clock by themselves.
CLOCK_MS = 5
# Each page navigates to the next one in another way, and the last is the first page again.
CHAIN = Case(
    """<script>
if (!sessionStorage.again) { sessionStorage.again = 1; location.reload(); }
else if (sessionStorage.again++ == 1) location.replace("/refresh");
</script>""",
    more={
        "refresh": html('<meta http-equiv="refresh" content="0; url=/form">'),
        "form": html("<script>onload = () => document.forms[0].submit()</script><form action=/back></form>"),
        "back?": html("<script>location = '/'</script>"),
    },
    quiet_ms=LATER_MS,
)
PATHS = ["", "", "refresh", "form", "back?", ""]
CASES = {
    "page-goes-on-by-itself": {
        "nowhere": Case(
            headers=(("Refresh", "0; url=/moved"),),
            reason=f"goes_on: the page {SHOP} goes on to {SHOP}moved by itself, and the page failed with "
            "ERR_NAME_NOT_RESOLVED; record it from there on (https://other.example/)",
            more={"moved": Response(302, "", (("Location", "https://other.example/"),), b"")},
            quiet_ms=LATER_MS,
        ),
    },
    "page-with-a-dialog": {
        "alert": Case(
            "<script>alert('Welcome,\\n“you”')</script>",
            'load_failed: the page opened a dialog: "Welcome,\\n“you”" while testing',
        ),
        "confirm": Case(
            "<script>onload = () => setTimeout(() => confirm('Cookies?'))</script>",
            'load_failed: the page opened a dialog: "Cookies?"',
            quiet_ms=LATER_MS,
        ),
    },
    "page-asks-for-a-login": {
        "page": Case(
            status=401,
            headers=LOGIN.headers,
            reason=f"error_page: the page asks for a login (status 401): {SHOP}",
        ),
        "image": Case(
            "<img src=/image>",
            f"over_time: not loaded within 8 s, and a login is asked for (status 401): {SHOP}image",
            more={"image": LOGIN},
        ),
    },
    "redirect-to-plain-http": {
        "page": Case(
            status=301,
            headers=(("Location", "http://shop.example/en/"),),
            reason="error_page: the page failed with ERR_CONNECTION_REFUSED: http://shop.example/en/",
        ),
    },
}


def loaded(case: Case, protocol: str, folder: Path) -> tuple[str, Evidence]:
    """The reason why one load of the case's page does not count, and its evidence."""
    page = html(case.head, *case.headers)
    if case.status != 200:
        page = page._replace(status=case.status, body=b"")
    start = Exchange("GET", case.start, page, "192.0.2.1")
    others = {"en/": html(), **case.more}
    exchanges = [Exchange("GET", case.start + path, response, "192.0.2.1") for path, response in others.items()]
    site = write_site(Recording(case.start, (start, *exchanges), {"tool": "test"}), folder / "site")
    # A page that waits for its user's answer waits until the end.
    loading = Loading(filmed=False, quiet_ms=case.quiet_ms, limit_s=8 if "image" in case.more else None)
    setting = Setting(site, DSL, protocols.load()[protocol], loading)
    assert load(setting, folder) is None
    evidence = read_evidence(folder, filmed=False)
    return str(reason_against(evidence, claim(setting), GATES_OF_LOADS) or ""), evidence


# Each case uses one transport, since transports do not matter here and each load takes seconds.
@pytest.mark.parametrize(
    ("case", "protocol"),
    [
        pytest.param(case, protocol, id=f"{name}-{kind}-{protocol}", marks=pytest.mark.case(name))
        for name, kinds in CASES.items()
        for (kind, case), protocol in zip(kinds.items(), cycle(("tcp", "quic")), strict=False)
    ],
)
def test_a_load_counts_or_says_what_the_page_did(case: Case, protocol: str, tmp_path: Path) -> None:
    reason, _ = loaded(case, protocol, tmp_path)
    assert reason.startswith(case.reason) and bool(reason) == bool(case.reason), reason


@pytest.mark.case("page-with-a-dialog")
def test_a_page_that_opens_a_window_or_prints_does_not_count(tmp_path: Path) -> None:
    # A host whose name ends with a dot is reached over QUIC, too.
    case = Case("<script>onload = () => { open('/en/'); print(); }</script>", start=DOTTED)
    reason, evidence = loaded(case, "quic", tmp_path)
    # The page's own window, the one that it opened, and the dialog.
    assert reason == WINDOW and evidence.windows == 3


@pytest.mark.case("page-goes-on-by-itself")
def test_a_page_that_goes_on_is_followed_and_measured_from_the_first_navigation(tmp_path: Path) -> None:
    reason, evidence = loaded(CHAIN, "quic", tmp_path)
    assert not reason and evidence.page_url == SHOP
    pages = [request for request in evidence.requests if request.main_frame]
    assert [page.url for page in pages] == [SHOP + path for path in PATHS]
    before, last = pages[-2:]
    assert before.began_s and last.began_s and evidence.plt
    # The last page was navigated to when the one before had come, and before it was requested itself. How soon each
    # follows depends on how busy the machine is.
    navigation = read_navigation(tmp_path)
    assert navigation and navigation.followed_ms == evidence.followed_ms
    came_ms = 1000 * before.began_s + DSL.min_rtt_ms
    assert came_ms - CLOCK_MS < navigation.began_ms + navigation.followed_ms < 1000 * last.began_s + CLOCK_MS
    # The times contain those of all pages: the earlier ones', and the last one's own.
    own_ms = evidence.page["browserScripts"][0]["timings"]
    assert evidence.plt == own_ms["pageTimings"]["pageLoadTime"] + evidence.followed_ms
    dcl, fcp = (next(metric for metric in METRICS if metric.name == name) for name in ("dcl", "fcp"))
    assert evidence.followed_ms < (fcp.read(evidence) or 0) and (dcl.read(evidence) or 0) > evidence.followed_ms


@pytest.mark.case("page-goes-on-by-itself")
@pytest.mark.case("page-with-critical-ch")
def test_a_page_that_stays_where_it_is_counts_and_what_no_server_could_answer_is_not_missed(tmp_path: Path) -> None:
    more = {"ready": html(), "secure": EMPTY, "none": EMPTY}
    headers = (*HINTS, ("Strict-Transport-Security", "max-age=1000"))
    case = Case(BUSY_PAGE, headers=headers, more=more, quiet_ms=LATER_MS)
    reason, evidence = loaded(case, "tcp", tmp_path)
    assert not reason and evidence.followed_ms == 0
    # The page did everything.
    urls = [request.url for request in evidence.requests]
    assert urls.count(SHOP) == 2
    assert {*(f"{SHOP}{path}" for path in ("ready", "gone", "none")), "http://shop.example/secure"} <= set(urls)
    missed = [url.url for url in requested_urls(tmp_path, evidence.requests) if url.missed]
    assert missed == ["https://gone.example/x"]


# A redirect to a page that needs client hints, so that both are requested again. Then a service worker answers.
TO_HINTS_AND_WORKER = Case(
    start=DOTTED,
    status=302,
    headers=(("Location", "/hints"),),
    more={"hints": html(ANSWERED_BY_WORKER, *HINTS), "sw.js": SERVICE_WORKER},
    quiet_ms=LATER_MS,
)


@pytest.mark.case("page-with-critical-ch")
def test_a_host_whose_name_ends_with_a_dot_is_reached_and_what_its_service_worker_answers_is_no_request_to_it(
    tmp_path: Path,
) -> None:
    reason, evidence = loaded(TO_HINTS_AND_WORKER, "tcp", tmp_path)
    assert not reason
    assert f"{DOTTED}made".encode() in gzip.decompress((tmp_path / HAR).read_bytes())
    assert not [url for url in requested_urls(tmp_path, evidence.requests) if url.missed]
    # The redirect and the page, each twice, and the worker's script.
    assert evidence.request_counts.served == 5
