"""Simulated runs: the duration of each, and whether it counts, are drawn from its name.

There is no browser and no network. The engine cannot distinguish them from real runs.
"""

import io
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from base.clock import now_iso
from base.files import read_json, write_json
from dataset.metrics import metric_names
from dataset.reasons import Reason
from dataset.run_files import ATTEMPT, LAST
from dataset.table import Row, Run
from films.policy import FilmPolicy
from measure.campaign.campaign import Campaign
from measure.campaign.method import Method
from measure.run.setting import Circumstances, Setting
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from tuning import networks, protocols

NETWORKS = ("dsl", "lte", "da2gc", "mss")
PROTOCOLS = ("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr")
# How long a run takes on each network (docs/install.md, "What it costs"), for the smallest and the largest page (s).
SECONDS = {"dsl": (6.0, 9.0), "lte": (7.0, 15.0), "da2gc": (13.0, 80.0), "mss": (17.0, 63.0)}
# The random part of a run's time (standard deviation of ln), and the share of attempts that a gate rejects, so that
# they are repeated.
SCATTER = 0.05
REJECTED_SHARE = 0.01
# The size of each file of a run's evidence except its film (bytes), from demo-light on lte.
EVIDENCE_BYTES = {
    "browsertime.har.gz": 4115,
    "browsertime.json": 29949,
    "browsertime.log": 407,
    "netlog.json.gz": 64497,
    "replay.json": 671,
    "replay.log": 0,
    "requests.tsv": 833,
    "strip.jpg": 14063,
    "times.json": 135,
    "visual.json": 255,
}
EXCHANGES = 50
# The share of runs whose last picture differs a little from the usual one.
ODD_SHARE = 0.2
# One pixel for each block of 8 by 8 of the window's 1366 by 768.
LAST_FRAME_SHAPE = (96, 170, 3)
VERSIONS = {"chromium": "made up"}


@dataclass(frozen=True)
class MadeUpRuns(Method):
    """Runs that only sleep.

    `speed`: how many times as fast as real runs; `evidence_share`: the size of their evidence as a share of a real
    run's.
    """

    speed: float = 10.0
    evidence_share: float = 0.1

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        draw = Random(f"{setting.seed}/{attempt}")
        seconds = seconds_of(setting.site.name, setting.network.name) * draw.lognormvariate(0, SCATTER)
        time.sleep(seconds / self.speed)
        for name, content in evidence_files(self.evidence_share).items():
            (folder / name).write_bytes(content)
        is_odd = draw.random() < ODD_SHARE
        (folder / LAST).write_bytes(last_picture(draw.randrange(LAST_FRAME_SHAPE[0]) if is_odd else None))
        document = {
            "started_at": now_iso(),
            "seconds": round(seconds, 3),
            "block": circumstances.block,
            "machine": circumstances.machine,
            "is_rejected": draw.random() < REJECTED_SHARE,
        }
        write_json(folder / ATTEMPT, document)

    def analyse(self, folder: Path) -> None:
        pass

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        document = read_json(folder / ATTEMPT)
        is_rejected = document["is_rejected"]
        draw = Random(f"{setting.seed}/{attempt}/metrics")
        return Row(
            site=run.site,
            network=run.network,
            protocol=run.protocol,
            run=run.number,
            attempt=attempt,
            valid=not is_rejected,
            reason=Reason("load_finished", "made up as one that did not") if is_rejected else None,
            metrics={} if is_rejected else {name: round(draw.uniform(500, 2000), 1) for name in metric_names()},
            requests=EXCHANGES,
            served=EXCHANGES,
            missed=0,
            exchanges=EXCHANGES,
            unrecorded=0,
            started_at=document["started_at"],
            seconds=document["seconds"],
            folder=str(folder.relative_to(campaign)),
            block=document["block"],
            machine=document["machine"],
            canary_cpu_ms=50.0,
            canary_page_ms=800.0,
        )


class MadeUpCampaign(Campaign):
    """A campaign that does not query the versions of its programs."""

    def versions(self) -> dict[str, str]:
        return VERSIONS


def campaign(folder: Path, sites: int, runs: int, method: MadeUpRuns) -> MadeUpCampaign:
    """The paper's campaign with another number of `sites` and `runs`, in `folder`, next to its sites of generated
    texts."""
    all_networks, all_protocols = networks.load(), protocols.load()
    return MadeUpCampaign(
        folder=folder,
        sites={site.name: site for site in (made_up_site(folder.parent, number) for number in range(1, sites + 1))},
        networks={name: all_networks[name] for name in NETWORKS},
        protocols={name: all_protocols[name] for name in PROTOCOLS},
        runs=runs,
        seed=1,
        method=method,
        films=FilmPolicy("none"),
    )


def made_up_site(folder: Path, number: int) -> Site:
    """A page of a few small texts, generated in `folder` if it does not exist."""
    name = f"site-{number:02}"
    place = folder / "sites" / name
    if place.exists():
        return Site.load(place)
    exchanges = tuple(
        Exchange("GET", f"https://{name}.example/{text or ''}", Response(200, "OK", (), b"x"), "192.0.2.1")
        for text in range(EXCHANGES)
    )
    return write_site(Recording(exchanges[0].url, exchanges, {"tool": "made up"}), place)


def seconds_of(site: str, network: str) -> float:
    """The average time of a run of that site on that network (s)."""
    least, most = SECONDS[network]
    return least + (most - least) * Random(site).betavariate(2, 4)


@cache
def evidence_files(share: float) -> Mapping[str, bytes]:
    """The files that a run leaves, except `attempt.json` and its last picture, each with this `share` of its real
    size."""
    return {name: os.urandom(int(share * size)) for name, size in EVIDENCE_BYTES.items()}


@cache
def last_picture(grey_row: int | None) -> bytes:
    """The last picture of a run; its row number `grey_row` is grey, unless that is None."""
    picture = io.BytesIO()
    frame = np.random.default_rng(1).integers(0, 255, LAST_FRAME_SHAPE, dtype=np.uint8)
    frame[:, : LAST_FRAME_SHAPE[1] * 3 // 4] = 255
    if grey_row is not None:
        frame[grey_row] = 128
    Image.fromarray(frame).save(picture, "png")
    return picture.getvalue()
