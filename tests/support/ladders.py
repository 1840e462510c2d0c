"""Campaigns of the ladder with known truth."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from factories import ROW, with_metrics

from base.structure import structured
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, header, lines, write_document
from studies.ladder.measure import variants
from studies.ladder.rungs import ABOVE, ARQ, BELOW, CONDITIONS, HIGHEST, RUNGS, SLOW, UNKNOWN
from tuning import networks, protocols

# The log ratio of each rung to the rung below, by the rung's protocol.
TRUTH = {
    "tcp-iw32": -0.10,
    "tcp-iw32-paced": 0.02,
    "tcp+": -0.03,
    "tcp+lowat": 0.0,
    "tcp+lowat+known": -0.02,
    "tcp+level": -0.01,
    "quic+1con+2rtt": 0.05,
    "quic+1con": -0.15,
    "quic+1con+urgency": 0.01,
    "quic": -0.04,
}
# The log ratios of the transport's rung under the conditions, and how much slower the page is in a slow browser.
TRANSPORT_ARQ, TRANSPORT_SLOW, SLOWNESS = 0.02, 0.12, 0.5
# The log ratio for QUIC in a browser that does not know that the servers speak QUIC.
UNKNOWN_SERVERS = 0.06
# Standard deviations of ln(time): between sites, blocks, and runs.
SITE_SD, BLOCK_SD, RUN_SD = 0.5, 0.1, 0.05
TYPICAL_MS = 1000.0


def log_times() -> dict[tuple[str, str], float]:
    """Suffix and protocol → ln of the time of a page that takes 1 ms over stock TCP."""
    levels = dict(zip((rung.protocol for rung in RUNGS), np.cumsum([0.0, *TRUTH.values()]), strict=True))
    times = {("", name): float(value) for name, value in levels.items()}
    times |= {(ARQ, BELOW): levels[BELOW] - 0.2, (ARQ, ABOVE): levels[BELOW] - 0.2 + TRANSPORT_ARQ}
    times["", UNKNOWN] = levels[HIGHEST] + UNKNOWN_SERVERS
    slow = levels[BELOW] + SLOWNESS
    return times | {(SLOW, BELOW): slow, (SLOW, ABOVE): slow + TRANSPORT_SLOW}


def write_ladder(
    folder: Path,
    *,
    seed: int = 1,
    sites: int = 4,
    blocks: int = 5,
    over: Sequence[str] = ("lte", "da2gc"),
    without: Sequence[str] = (),
    later: Mapping[str, float] | None = None,
    lost: Mapping[str, int] | None = None,
    conditions: Sequence[str] = CONDITIONS,
    missing: Sequence[Mapping[str, str]] = (),
    run_sd: float = RUN_SD,
) -> Path:
    """Write a campaign of the ladder, whose rungs differ by TRUTH, into `folder`.

    `without`: protocols that it lacks. `later`: protocol → the increase of its ln(time) in the second half of the
    blocks. `lost`: protocol → how many of its first runs at each site do not count.
    """
    random = np.random.default_rng(seed)
    known, all_protocols = networks.load(), protocols.load()
    chosen = [variant for name in over for variant in (known[name], *variants(known[name], conditions))]
    names = [f"site{number}" for number in range(sites)]
    rows, block = [], 0
    for network in over:
        level = np.log(TYPICAL_MS * (1 if network == "lte" else 10))
        suffixes = {"", *(one.name.removeprefix(network) for one in variants(known[network], conditions))}
        for site in names:
            page = level + random.normal(0, SITE_SD)
            for number in range(1, blocks + 1):
                block += 1
                moment = random.normal(0, BLOCK_SD)
                for (suffix, protocol), value in log_times().items():
                    if suffix not in suffixes or protocol in without:
                        continue
                    shift = (later or {}).get(protocol, 0.0) if number > blocks / 2 else 0.0
                    time = float(np.exp(page + moment + value + shift + random.normal(0, run_sd)))
                    row = with_metrics(ROW, fvc=None, lvc=None, vc85=None, si=time, plt=2 * time)
                    counts = number > (lost or {}).get(protocol, 0)
                    place = f"runs/{site}/{network}{suffix}/{protocol}/{number}-1"
                    row = replace(
                        row, site=site, network=network + suffix, protocol=protocol, run=number, block=block,
                        valid=counts, reason=None, folder=place,
                    )  # fmt: skip
                    rows.append(row)
    folder.mkdir(parents=True)
    (folder / "runs.csv").write_text(header() + lines(rows))
    settings = {
        "seed": 1,
        "runs": blocks,
        "method": {"processor_share": 0.5},
        "sites": {name: {} for name in names},
        "networks": {one.name: asdict(one) for one in chosen},
        "protocols": {name: asdict(all_protocols[name]) for name in ("tcp", *TRUTH, UNKNOWN) if name not in without},
    }
    study = {"name": "ladder", "conditions": list(conditions), "missing": list(missing)}
    write_document(
        folder, CampaignDocument(structured(settings, CampaignSettings, ""), machine={"cpus": 2}, study=study)
    )
    return folder
