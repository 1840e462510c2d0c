"""Campaigns of doses with known truth."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from factories import ROW, with_metrics

from analysis.statistics.samples import Array
from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import PROCESSOR_WAIT, CampaignDocument, header, lines, write_document
from studies.dose import PROTOCOLS
from studies.dose.measure import with_shares
from studies.dose.shares import SHARES
from tuning import networks, protocols

WORK = "renderer_cpu_ms"


@dataclass(frozen=True)
class DoseWorld:
    """The truth of a dose: the mean share of waiting at each share of the processor; the log ratio `unwaited`, and its
    `slope`, for a share of waiting of 1; by how much the ratio at the middle share is off the line (`bend`).

    Standard deviations: of log ratios within blocks (`scatter`), of the true share of waiting (`busy`) and of the
    error with which it is measured (`wait_error`), of the pages' log ratios and slopes (`pages`, `slopes`) and of the
    logarithms of their waits (`waits_of_pages`). `stalls`: a moment with more waiting changes the log ratio by so much
    more than the line says, per share of waiting. `heavy`: one block in twenty has a long load.
    """

    sites: int = 6
    blocks: int = 10
    waiting: tuple[float, ...] = (0.15, 0.33, 0.45)
    unwaited: float = -0.1
    slope: float = 0.25
    bend: float = 0.0
    scatter: float = 0.08
    busy: float = 0.04
    wait_error: float = 0.05
    pages: float = 0.1
    slopes: float = 0.15
    waits_of_pages: float = 0.15
    stalls: float = 0.5
    heavy: bool = False


@dataclass(frozen=True)
class Doses:
    """Log ratios and measured waits of simulated campaigns (campaigns x sites x blocks x SHARES), and the true means
    over their pages: of log ratios without waiting, and of slopes (campaigns)."""

    ratios: Array
    waits: Array
    unwaited: Array
    slope: Array


def simulated(world: DoseWorld, campaigns: int, seed: int) -> Doses:
    """The doses of this number of `campaigns` in `world`."""
    draw = np.random.default_rng(seed)
    of_page, shape = (campaigns, world.sites, 1, 1), (campaigns, world.sites, world.blocks, len(SHARES))
    unwaited = draw.normal(world.unwaited, world.pages, of_page)
    slope = draw.normal(world.slope, world.slopes, of_page)
    busy = draw.normal(0, world.busy, shape)
    waits = np.array(world.waiting) * np.exp(draw.normal(0, world.waits_of_pages, of_page)) + busy
    scatter = draw.normal(0, world.scatter, shape)
    if world.heavy:
        scatter += np.where(draw.random(shape) < 0.05, draw.normal(0, 0.5, shape), 0)
    bend = np.array([0, world.bend, 0])
    ratios = unwaited + slope * waits + world.stalls * busy + scatter + bend
    measured = waits + draw.normal(0, world.wait_error, shape)
    return Doses(ratios, measured, unwaited.mean(axis=(1, 2, 3)), slope.mean(axis=(1, 2, 3)))


def write_dose(
    folder: Path,
    world: DoseWorld = DoseWorld(),
    *,
    seed: int = 1,
    requests: Sequence[int] = (),
    without: Mapping[str, int] | None = None,
    network: str = "lte",
) -> Path:
    """Write a campaign of `world` into `folder`. `requests`: those of each site, if known. `without`: network → how
    many of its first blocks at each site lack the compared protocol."""
    doses = simulated(world, 1, seed)
    chosen, known = with_shares(networks.load()[network]), protocols.load()
    rows, names = [], [f"site{number}" for number in range(world.sites)]
    for place in np.ndindex(doses.ratios.shape[1:]):
        site, block, share = place
        wait, ratio = float(np.clip(doses.waits[0][place], 0, 0.99)), float(doses.ratios[0][place])
        for protocol, log in zip(PROTOCOLS, (0.0, ratio), strict=True):
            time, name = 1000 * float(np.exp(log)), chosen[share].name
            counts = protocol == PROTOCOLS[0] or block >= (without or {}).get(name, 0)
            metrics = with_metrics(ROW, fvc=None, lvc=None, vc85=None, si=time, plt=time * 2, fcp=time, lcp=time)
            rows.append(
                replace(
                    metrics, site=names[site], network=name, protocol=protocol, run=block + 1, valid=counts,
                    block=1 + site * world.blocks + block, reason=None,
                    folder=f"runs/{names[site]}/{name}/{protocol}/{block + 1}-1",
                    readings={WORK: 500 * (1 - wait), PROCESSOR_WAIT: 500 * wait},
                )
            )  # fmt: skip
    folder.mkdir(parents=True)
    readings = (WORK, PROCESSOR_WAIT)
    (folder / "runs.csv").write_text(header(readings) + lines(rows, readings))
    settings = {
        "seed": 1, "runs": world.blocks, "sites": {name: {} for name in names},
        "networks": {one.name: asdict(one) for one in chosen},
        "protocols": {name: asdict(known[name]) for name in PROTOCOLS},
    }  # fmt: skip
    zero = {"bytes": 1, "servers": 1, "hosts": 1, "third_party_hosts": 0, "largest_bytes": 1, "largest": ""}
    facts = {name: {"exchanges": number, **zero} for name, number in zip(names, requests, strict=False)}
    document = CampaignDocument(structured(settings, CampaignSettings, ""), study={"name": "dose"}, site_facts=facts)
    write_document(folder, document)
    return folder
