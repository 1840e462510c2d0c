"""Small campaigns of real loads; checks that a load counts, and that a campaign has exactly what was planned."""

import csv
import gzip
import json
import subprocess
from functools import cache, partial
from pathlib import Path

from rich.console import Console

from base.places import tool
from dataset.plan import read_plan
from dataset.reasons import Reason
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.method import claim
from measure.campaign.place import measure_here
from measure.campaign.progress import ProgressDisplay
from measure.campaign.slot import Slot
from measure.host.canary import Canary
from measure.run.evidence import Evidence
from measure.run.gates import GATES, reason_against
from measure.run.setting import Loading, Setting
from record.demo import generate
from record.site import Site, write_site
from tuning import networks, protocols
from tuning.defaults import DEFAULT_BROWSER


def reason_against_page(evidence: Evidence, setting: Setting) -> Reason | None:
    """The reason of the first gate that rejects a load, except the gates that blame the machine: other tests keep it
    busy. None if the load counts."""
    return reason_against(evidence, claim(setting), [gate for gate in GATES if not gate.is_of_machine])


class UntimedSlot(Slot):
    """This machine, without canaries: one takes as much of the processor as a load, and has tests of its own
    (`test_campaign_parts`, and `test_registrations_servers` in a campaign)."""

    def timed_canary(self) -> Canary:
        """See `Slot`."""
        return Canary(50.0, 800.0)


def run_of_each(
    site: Site, folder: Path, browser: str = DEFAULT_BROWSER, names: tuple[str, ...] = ("tcp", "quic")
) -> Campaign:
    """A campaign of one run of `site` over each of the protocols called `names`, on LTE, in `folder`, which must not
    exist."""
    known = protocols.load()
    campaign = Campaign(
        folder=folder,
        sites={site.name: site},
        networks={"lte": networks.load()["lte"]},
        protocols={name: known[name] for name in names},
        runs=1,
        seed=1,
        loading=Loading(browser=browser),
    )
    # No other test times a canary in another browser.
    slot = UntimedSlot() if browser == DEFAULT_BROWSER else None
    measure(campaign, partial(ProgressDisplay, Console()), partial(measure_here, slot=slot))
    return campaign


@cache
def light_campaign(session_folder: Path) -> Campaign:
    """`run_of_each` of demo-light, as this checkout generates it, in Chromium.

    It is made once for all files of a session (of each worker), in its folder of temporary files. Tests must not change
    it.
    """
    folder = session_folder / "light"
    folder.mkdir()
    return run_of_each(write_site(generate("demo-light"), folder / "demo-light"), folder / "results")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "runs.csv").open() as file:
        return list(csv.DictReader(file))


def assert_whole(folder: Path, runs: int) -> None:
    """Assert that each planned run counts exactly once, that all evidence can be read, and that there is nothing
    else."""
    planned = [(run.site, run.network, run.protocol, str(run.number)) for block in read_plan(folder) for run in block]
    assert len(planned) == runs
    attempts = rows(folder)
    valid = [row for row in attempts if row["valid"] == "true"]
    assert sorted((row["site"], row["network"], row["protocol"], row["run"]) for row in valid) == sorted(planned)
    folders = [row["folder"] for row in attempts]
    assert len(set(folders)) == len(folders)
    assert {str(path.relative_to(folder)) for path in folder.glob("runs/*/*/*/*")} == set(folders)
    for row in valid:
        evidence = folder / row["folder"]
        for name in ("attempt.json", "visual.json", "browsertime.json", "replay.json"):
            json.loads((evidence / name).read_text())
        for name in ("browsertime.har.gz", "netlog.json.gz"):
            gzip.decompress((evidence / name).read_bytes())
        probe: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-i", evidence / "film.mp4", "-f", "null", "-"]
        assert subprocess.run(probe, capture_output=True, text=True, check=True).stderr == ""
    # Interrupted writes have left no files.
    assert [path for path in folder.rglob(".*") if path.is_file()] == []
