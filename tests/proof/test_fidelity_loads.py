"""Ten generated pages are recorded and loaded live on known networks, and replayed: replays take nearly as long.

`clients/demo_origin.py` stands in for the live web: NGINX that sends plain files, over the kernel's TCP with default
settings. The replays are those of every campaign: NGINX with an application, and all settings of `tcp`.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from analysis.runs import load
from base.namespaces import namespaced
from base.places import PROJECT
from measure.campaign.engine import measure
from measure.campaign.progress import ProgressDisplay
from measure.live import read_live
from measure.run.aliases import choose_protocols
from record.site import Site
from replay.shells.ours import shell
from servers.certificates import machine_ca_certificate
from studies.fidelity.errors import errors, overall
from studies.fidelity.measure import compare, fidelity_campaign, live_of, summary
from studies.study import Request
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]

LIVE_LOADS, RUNS = 5, 7
MOST_PLT_ERROR = 0.05
# TCP handshakes on a known network; the browser logs whole ms.
ROUND_TRIP_MS = 3


@dataclass(frozen=True)
class Page:
    """A generated page, and the network on which it is recorded."""

    name: str
    seed: int
    network: str

    @property
    def url(self) -> str:
        return f"https://www.{self.name}.example/"


PAGES = (
    Page("demo-light", 1, "dsl"),
    Page("demo-light", 2, "lte"),
    Page("demo-light", 3, "lte"),
    Page("demo-news", 1, "dsl"),
    Page("demo-news", 2, "lte"),
    Page("demo-news", 3, "dsl"),
    Page("demo-gallery", 1, "dsl"),
    Page("demo-gallery", 2, "lte"),
    Page("demo-gallery", 3, "dsl"),
    Page("demo-light", 4, "dsl"),
)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[Page, Site]:
    """The pages, recorded with live loads, each in a separate web."""
    return {page: recorded(page, tmp_path_factory.mktemp("web")) for page in PAGES}


def recorded(page: Page, folder: Path) -> Site:
    """`page`, recorded with live loads on its network."""
    # Programs of other users read from it.
    folder.chmod(0o755)
    site = folder / "sites" / f"{page.name}-{page.seed}"
    (folder / "targets").write_text(f"{site.name} {page.url}\n")
    record = ["record", str(folder / "targets"), "--into", str(site.parent), "--live", str(LIVE_LOADS)]
    record += ["--net", page.network, "--origin-ca", str(machine_ca_certificate())]
    origin = [str(PROJECT / "tests" / "clients" / "demo_origin.py"), str(folder), page.name, str(page.seed)]
    inside = [*shell(networks.load()[page.network], seed=page.seed), "--"]
    command = [*namespaced("net", "mount"), sys.executable, *origin, *inside, sys.executable, "-m", "eyelevel", *record]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Site.load(site)


def test_live_loads_see_the_network_that_they_went_over(sites: dict[Page, Site]) -> None:
    for page, site in sites.items():
        live = read_live(site)
        assert live and len(live.loads) == LIVE_LOADS
        assert set(live.requests) == {"h2"}
        shortest_ms = min(live.round_trips_ms.values())
        assert shortest_ms == pytest.approx(networks.load()[page.network].min_rtt_ms, abs=ROUND_TRIP_MS)


def test_replays_take_as_long_as_live_loads(sites: dict[Page, Site], tmp_path: Path) -> None:
    known, over = networks.load(), choose_protocols("tcp", protocols.load())
    compared = {site.name: compare(site, known, over) for site in sites.values()}
    request = Request(tmp_path / "fidelity", runs=RUNS)
    measure(fidelity_campaign(request, list(sites.values()), compared, known), partial(ProgressDisplay, Console()))
    print(*summary(request.folder), sep="\n")
    by_site = errors(load(request.folder), live_of(request.folder), 0.95)
    print(by_site.to_string())
    (plt,) = overall(by_site[by_site["metric"] == "plt"], 0.95).to_dict("records")
    assert plt["sites"] == len(PAGES)
    assert plt["median_error"] < MOST_PLT_ERROR
