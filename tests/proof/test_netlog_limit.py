"""A page that makes the browser exceed its log's limit has no valid load, over either protocol."""

import json
import sys
from pathlib import Path

import pytest

from base.portable import as_argument
from browsers.chromium.netlog import read_netlog
from browsers.chromium_browser import BROWSER
from dataset.run_files import TIMINGS
from measure.run.evidence import read_evidence
from measure.run.visit_spec import VisitSpec
from record.http1 import Response
from record.site import Exchange, Recording, write_site
from replay import ReplaySpec, run
from servers.registry import require_served
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]

# Loads a page like `measure.run.visit`, with a limit that is reached in seconds.
LIMIT_MB = 1
VISIT = f"""
import sys
import browsers.chromium_browser
from measure.run import visit
browsers.chromium_browser.NETLOG_MB = {LIMIT_MB}
visit.main(sys.argv[1])
"""
# The page sends 1200 requests, then navigates, so that the log contains a page again when the first is dropped.
PAGE = """<!doctype html><title>Much</title><script>
(async () => {
  for (let n = 0; n < 60; n++)
    await Promise.all(Array.from({ length: 20 }, () => fetch("/again", { cache: "no-store" })));
  location.href = "/second";
})();
</script>"""


@pytest.mark.parametrize("name", ["tcp", "quic"])
def test_a_log_without_its_beginning_fails_the_load(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://much.example/"
    bodies = {url: PAGE, f"{url}again": "again", f"{url}second": "<!doctype html><p>second"}
    exchanges = tuple(
        Exchange("GET", each, Response(200, "OK", (("Content-Type", "text/html"),), body.encode()), "192.0.2.1")
        for each, body in bodies.items()
    )
    site = write_site(Recording(url, exchanges, {"tool": "test"}), tmp_path / "much")
    (protocol,) = require_served([protocols.load()[name]])
    folder = tmp_path / name
    spec = VisitSpec(site.folder, protocol, protocol.connection_options, 60.0, folder, film=False)
    with (tmp_path / "output").open("wb") as output:
        replay = ReplaySpec(site.folder, networks.load()["dsl"], protocol)
        run(replay, [sys.executable, "-c", VISIT, as_argument(spec)], stdout=output.fileno(), stderr=output.fileno())
    assert json.loads((folder / TIMINGS).read_text()), (tmp_path / "output").read_text()
    assert url not in [request.url for request in read_netlog(folder / BROWSER.network_log)]
    monkeypatch.setattr("browsers.chromium_browser.NETLOG_MB", LIMIT_MB)
    failures = read_evidence(folder, filmed=False).failures
    assert f"{BROWSER.network_log} is broken: the page made the browser log more than 1 MiB" in failures[0]
