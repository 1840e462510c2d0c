"""A page has not finished while an answer to it is under way, however long that takes."""

import gzip
import io
import json
import wave
from pathlib import Path

import pytest

from dataset.run_files import HAR, REQUEST_LOG, TIMES
from measure.run.evidence import Evidence, page_requests, read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from tuning import protocols
from tuning.networks import Network

# The quiet time is shorter than the time for which the script is under way. A page is given up after five quiet times.
QUIET_MS = 2000
GIVEN_UP_S = 5 * QUIET_MS / 1000
SCRIPT_BYTES = 750_000
NETWORK = Network("slow", min_rtt_ms=20, up_mbps=2, down_mbps=2, queue_ms=200)
SCRIPT_S = SCRIPT_BYTES * 8 / 2e6
# After its load, the page sends requests that end in all possible ways, and requests a script that requests a picture,
# and a sound, which is not played and takes longer to arrive than we wait for a page.
PAGE = b"""<!doctype html><title>Under way</title><body><script>
onload = () => setTimeout(() => {
    fetch("/moved");
    fetch("/no-such");
    fetch("https://other.example/refused").catch(() => {});
    navigator.sendBeacon("/beacon", "x");
    fetch("/kept", { method: "POST", keepalive: true });
    const given_up = new AbortController();
    fetch("/given-up", { signal: given_up.signal }).catch(() => {});
    given_up.abort();
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.src = "https://other.example/frame";
    new Worker("/worker.js");
    new Worker(URL.createObjectURL(new Blob([""], { type: "text/javascript" })));
    document.body.appendChild(document.createElement("script")).src = "/script.js";
});
</script>"""

BROWSERS = pytest.mark.parametrize(
    "browser",
    [
        pytest.param("chromium", marks=pytest.mark.needs_browser),
        pytest.param("firefox", marks=pytest.mark.needs_firefox),
    ],
)


def sound() -> bytes:
    """A file of sound that takes twice as long to arrive as we wait for a page."""
    with io.BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setparams((2, 2, 44_100, 0, "NONE", ""))
            sound.writeframes(bytes(round(2 * GIVEN_UP_S * 2e6 / 8)))
        return file.getvalue()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    script = b'new Image().src = "/last.png"; document.body.append(new Audio("/sound.wav"));'.ljust(SCRIPT_BYTES)
    answers = {
        "https://a.example/": Response(200, "OK", (("Content-Type", "text/html"),), PAGE),
        "https://a.example/script.js": Response(200, "OK", (("Content-Type", "text/javascript"),), script),
        "https://a.example/worker.js": Response(200, "OK", (("Content-Type", "text/javascript"),), b""),
        "https://a.example/moved": Response(302, "Found", (("Location", "/there"),), b""),
        "https://a.example/there": Response(200, "OK", (), b"there"),
        "https://a.example/beacon": Response(204, "No Content", (), b""),
        "https://a.example/kept": Response(204, "No Content", (), b""),
        "https://a.example/given-up": Response(200, "OK", (), b"x"),
        "https://a.example/sound.wav": Response(200, "OK", (("Content-Type", "audio/wav"),), sound()),
        "https://a.example/last.png": Response(200, "OK", (("Content-Type", "image/png"),), b"no picture"),
        # This response lacks the header that would let the page read it.
        "https://other.example/refused": Response(200, "OK", (), b"x"),
        "https://other.example/frame": Response(200, "OK", (("Content-Type", "text/html"),), b"<p>frame"),
    }
    methods = {"https://a.example/beacon": "POST", "https://a.example/kept": "POST"}
    servers = {"a.example": "192.0.2.1", "other.example": "192.0.2.2"}
    exchanges = tuple(
        Exchange(methods.get(url, "GET"), url, answer, servers[url.split("/")[2]]) for url, answer in answers.items()
    )
    folder = tmp_path_factory.mktemp("sites") / "under-way"
    return write_site(Recording("https://a.example/", exchanges, {"tool": "test"}), folder)


def loaded(site: Site, browser: str, protocol: str, folder: Path) -> tuple[Evidence, float]:
    """The evidence of a load of `site` in `folder`, and how long after its load event the load ended (s)."""
    loading = Loading(filmed=False, quiet_ms=QUIET_MS, browser=browser)
    assert load(Setting(site, NETWORK, protocols.load()[protocol], loading), folder) is None
    evidence = read_evidence(folder, filmed=False)
    assert evidence.plt is not None
    times = json.loads((folder / TIMES).read_text())
    return evidence, times["over"] - times["begin"] - evidence.plt / 1000


@pytest.mark.needs_namespaces
@pytest.mark.loads
@BROWSERS
def test_an_answer_that_is_under_way_is_waited_for_and_nothing_else(site: Site, tmp_path: Path, browser: str) -> None:
    # One transport is enough, since the browser reports which requests are under way, whatever the transport.
    evidence, waited_s = loaded(site, browser, "quic", tmp_path)
    urls = [request.url for request in page_requests(tmp_path / REQUEST_LOG, evidence.requests)]
    assert {"https://a.example/last.png", "https://a.example/sound.wav"} <= set(urls)
    # The script was requested after the load event. All other requests have ended earlier, and the browser takes the
    # sound as it needs it, so the page is not given up.
    assert SCRIPT_S + QUIET_MS / 1000 < waited_s < GIVEN_UP_S
    har = json.loads(gzip.decompress((tmp_path / HAR).read_bytes()))
    in_har = [entry["request"]["url"] for entry in har["log"]["entries"]]
    assert {"https://a.example/", "https://a.example/script.js"} <= set(in_har)
    assert len(in_har) == len(set(in_har))
