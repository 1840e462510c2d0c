"""Makes several live loads of a page that has just been recorded; each must count."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, cache_dir
from base.privileges import require_browsing
from base.structure import to_json
from browsers.browsertime.configuration import QUIET_MS
from browsers.registry import browser_named
from dataset.metrics import read_metrics, time_names
from dataset.run_files import LOG
from measure.host.canary import time_canary
from measure.live.visit import BROWSER, LiveVisit, live_addresses
from measure.run.browser import window
from measure.run.evidence import Evidence, analyse_film, last_line, read_evidence
from measure.run.gates import GATES, Claim, reason_against
from record.live import LiveLoad, LiveLoads, http_version
from record.site import Site
from tuning.networks import Network

# How often a rejected load is repeated.
REPEATS = 2
# On the web, a request that one of many servers does not answer is no fault of the load, and servers may speak any
# version of HTTP.
NOT_OF_THE_WEB = frozenset({"wrong_protocol", "request_failed"})
LIVE_GATES = tuple(gate for gate in GATES if gate.name not in NOT_OF_THE_WEB)


def load_live(site: Site, count: int, network: Network | None = None, origin_ca: Path | None = None) -> LiveLoads:
    """Load the page of `site` live `count` times, one after the other, over this machine's own network.

    `network` describes that network, if known. The page reaches only the servers from which it was recorded, so our own
    recorder must have made the site; `origin_ca` is that of `LiveVisit`. Raises EyelevelError when a load does not
    count after all repeats.
    """
    if site.page_script is not None:
        raise EyelevelError(f"{site.name} has a page script, which is not run in live loads")
    require_browsing("loading live")
    visit = LiveVisit(site.folder.resolve(), Path(), (network and network.quiet_ms) or QUIET_MS, origin_ca)
    loaded_at, browser, loads = now_iso(), BROWSER, []
    round_trips_ms: dict[str, float] = {}
    for _ in range(count):
        canary = time_canary(BROWSER)
        evidence, handshakes_ms = _load_that_counts(site, visit)
        times = {name: time for name, time in read_metrics(evidence).items() if name in time_names()}
        metrics = {name: time for name, time in times.items() if time is not None}
        loads.append(LiveLoad(metrics, _protocols(evidence), {"cpu": canary.cpu_ms, "page": canary.page_ms}))
        browser = _browser_name(evidence) or browser
        for address, time_ms in handshakes_ms.items():
            round_trips_ms[address] = min(time_ms, round_trips_ms.get(address, time_ms))
    name, settings = (network.name, settings_of(network)) if network else (None, {})
    return LiveLoads(browser, loaded_at, tuple(loads), name, settings, round_trips_ms)


def settings_of(network: Network) -> dict[str, Any]:
    """The settings that identify `network`. Paths of traces are left out; their fingerprints identify them."""
    # Converted through JSON, since they are compared with values read from JSON, where tuples are lists.
    known = json.loads(json.dumps(asdict(network)))
    kept = {name: value for name, value in known.items() if value is not None}
    return {name: value for name, value in kept.items() if not name.endswith(("_trace", "_conditions"))}


def _load_that_counts(site: Site, visit: LiveVisit) -> tuple[Evidence, dict[str, float]]:
    """The evidence of a valid load, and its servers' handshake times (`Browser.read_handshakes`)."""
    reason = None
    for _ in range(1 + REPEATS):
        with tempfile.TemporaryDirectory(prefix="eyelevel-live-") as temporary:
            folder = Path(temporary)
            _load_once(visit, folder)
            analyse_film(folder)
            evidence = read_evidence(folder)
            if not (reason := reason_against(evidence, _claim(site), LIVE_GATES)):
                return evidence, browser_named(BROWSER).read_handshakes(folder)
            said = last_line(folder / LOG)
    raise EyelevelError(f"{site.name} could not be loaded live in {1 + REPEATS} tries: {reason} ({said})")


def _load_once(visit: LiveVisit, folder: Path) -> None:
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)}
    command = [*namespaced("mount", "ipc"), sys.executable, "-m", "measure.live.visit"]
    # The exit status is not checked: the files that the load has left show whether it counts.
    subprocess.run(command, env=environment, input=to_json(replace(visit, folder=folder)).encode(), check=False)


def _claim(site: Site) -> Claim:
    page_window = window(site)
    servers = frozenset(live_addresses(site).values())
    return Claim(
        http_version="",
        servers=servers,
        hosts=frozenset(site.addresses),
        window=(page_window.width, page_window.height),
        filmed=True,
        limit_s=None,
        http1_servers=(),
        cross_traffic=(),
        further_versions=(),
        knows_alternative=False,
        device=None,
        scripted=False,
    )


def _protocols(evidence: Evidence) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, requests in evidence.har_protocols.items():
        if name:  # a failed request has no name
            counts[http_version(name)] += requests
    return dict(counts)


def _browser_name(evidence: Evidence) -> str:
    browser = evidence.page.get("info", {}).get("browser", {})
    return f"{browser.get('name', '')} {browser.get('version', '')}".strip()
