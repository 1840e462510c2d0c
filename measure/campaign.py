"""A campaign: every site over every network and protocol, many times, in an order drawn from a seed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eyelevel.errors import EyelevelError
from eyelevel.ownership import give_to_caller
from measure import browser
from measure.completeness import digest
from measure.evidence import Evidence, analyse_film, read_evidence
from measure.gates import HTTP_VERSION, Claim, reason_against
from measure.load import load
from measure.machine import machine, versions
from measure.plan import Run, plan
from measure.progress import Watch, now_iso
from measure.results import Results, Row, opened
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

# How often an invalid run is repeated before it is given up.
REPEATS = 2
# A replay that fails is the testbed's fault; after so many, the rest of the campaign would fare the same.
REPLAY_FAILURES_IN_A_ROW = 5
REPLAY_FAILED = "replay"


@dataclass(frozen=True)
class Campaign:
    """What is to be measured, and where the results go.

    `repeatable`: whether pages are made to ask for the same on every load (`replay.repeatable`).
    """

    folder: Path
    sites: Mapping[str, Site]
    networks: Mapping[str, Network]
    protocols: Mapping[str, Protocol]
    runs: int
    seed: int
    repeatable: bool = True

    def document(self) -> dict[str, Any]:
        """All of it that results depend on, as `campaign.json` keeps it."""
        return {
            "settings": {
                "seed": self.seed,
                "runs": self.runs,
                "repeats": REPEATS,
                "repeatable": self.repeatable,
                "browser": browser.settings(),
                "sites": {name: {"url": site.url, "sha256": digest(site)} for name, site in self.sites.items()},
                "networks": {name: asdict(network) for name, network in self.networks.items()},
                "protocols": {name: asdict(protocol) for name, protocol in self.protocols.items()},
            },
            "versions": versions({protocol.transport for protocol in self.protocols.values()}),
            "machine": machine(),
            "begun_at": now_iso(),
        }


def measure(campaign: Campaign, watch: Callable[[list[Run], int], Watch]) -> None:
    """Measure what is left of `campaign`: each run until it is valid, or has been repeated often enough.

    Raises EyelevelError when the replay itself fails again and again.
    """
    blocks = plan(campaign.sites, campaign.networks, list(campaign.protocols), campaign.runs, campaign.seed)
    with opened(campaign.folder, campaign.document()) as results:
        give_to_caller(campaign.folder)
        replay_failures = 0
        planned = [run for block in blocks for run in block]
        left = [run for run in planned if is_left(run, results)]
        with watch(left, len(planned) - len(left)).shown() as shown:
            for run in left:
                while is_left(run, results):
                    attempt = results.attempts(run) + 1
                    shown.begins(run, attempt)
                    row = measure_once(campaign, run, attempt, results.run_folder(run, attempt))
                    results.append(row)
                    give_to_caller(campaign.folder / row.folder, campaign.folder)
                    shown.ends(run, row, given_up=not is_left(run, results))
                    replay_failures = replay_failures + 1 if row.reason.startswith(REPLAY_FAILED) else 0
                    if replay_failures == REPLAY_FAILURES_IN_A_ROW:
                        raise EyelevelError(f"{replay_failures} replays in a row failed, the last with: {row.reason}")


def is_left(run: Run, results: Results) -> bool:
    """Whether `run` is still to be measured: not yet valid, and not given up."""
    return not results.is_valid(run) and results.attempts(run) <= REPEATS


def measure_once(campaign: Campaign, run: Run, attempt: int, folder: Path) -> Row:
    """One attempt at `run`: replay the site, load it in a fresh browser, look at the film, judge."""
    site, protocol = campaign.sites[run.site], campaign.protocols[run.protocol]
    network = campaign.networks[run.network]
    started_at, started = now_iso(), time.monotonic()
    failure = load(site, network, protocol, folder, repeatable=campaign.repeatable)
    analyse_film(folder)
    evidence = read_evidence(folder)
    claim = Claim(HTTP_VERSION[protocol.transport], frozenset(site.servers))
    reason = f"{REPLAY_FAILED}: {failure}" if failure else reason_against(evidence, claim)
    seconds = round(time.monotonic() - started, 3)
    return _row(run, attempt, reason, evidence, started_at, seconds, folder.relative_to(campaign.folder))


def _row(
    run: Run, attempt: int, reason: str | None, evidence: Evidence, started_at: str, seconds: float, folder: Path
) -> Row:
    visual = evidence.visual
    return Row(
        site=run.site,
        network=run.network,
        protocol=run.protocol,
        run=run.number,
        attempt=attempt,
        valid=reason is None,
        reason=reason or "",
        fvc=visual.fvc if visual else None,
        lvc=visual.lvc if visual else None,
        vc85=visual.vc85 if visual else None,
        si=visual.si if visual else None,
        plt=evidence.plt,
        **asdict(evidence.asked),
        unrecorded=evidence.unrecorded,
        started_at=started_at,
        seconds=seconds,
        folder=str(folder),
    )
