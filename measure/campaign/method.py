"""How a run is made and judged. `Method` is the method of pages; a study's method is a subclass of it.

    prepared (`prepare`)  →  made (`make`)  →  its film analysed (`analyse`)  →  judged (`judge`)

`attempt.json` in a run's folder states that the run is complete: it is written last, when all else is on the disk. So
after a power cut, complete runs are judged, and the others are made again.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.files import read_json, sync, write_json
from dataset.metrics import read_metrics
from dataset.reasons import Reason
from dataset.run_files import ATTEMPT, CROSS_TRAFFIC
from dataset.table import Row, Run
from measure.campaign.expectations import EXPECTATIONS, Expectation
from measure.host.affinity import Layout
from measure.host.idle_priority import IdlePriority
from measure.run.browser import window
from measure.run.evidence import Evidence, analyse_film, read_evidence, share_of
from measure.run.gates import GATES, Claim, Gate, reason_against
from measure.run.load import NO_CALLS, Load, Moments, Observers, load
from measure.run.setting import Circumstances, Setting
from tuning.cross_traffic import Flow, flows_of
from tuning.devices import device_of
from tuning.impairments.contract import DOWN, UP
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Method:
    """How runs are made and judged. A subclass overrides what differs; it must be picklable, for Dask's workers.

    `captures`: whether the programs that capture packets take part. `takes_alternatives`: whether the method can use
    loads whose servers speak two versions of HTTP. `sees_tunnels`: whether it can use packets in a tunnel.
    """

    captures: bool = False
    takes_alternatives: bool = False
    sees_tunnels: bool = False

    def settings(self) -> Mapping[str, Any]:
        """The method's own settings on which results depend, in addition to those of every campaign; they go into
        `campaign.json`."""
        return {}

    def observers(self, setting: Setting, folder: Path) -> Observers:
        """The method's programs that observe a load of `setting`; their output goes to `folder`."""
        return Observers()

    def seconds_of_run(self) -> float | None:
        """How long each run lasts; None if the page determines it. If not None, `settings` must have it, too, as
        `seconds`, for readers of the campaign's folder."""
        return None

    def flow_protocols(self, under_test: Iterable[Protocol]) -> Sequence[Protocol]:
        """The protocols of flows that belong to no page, when `under_test` are the protocols under test."""
        return ()

    def gates(self) -> Sequence[Gate]:
        """The gates that a run must pass."""
        return GATES

    def expectations(self) -> Sequence[Expectation]:
        """The gates that compare a run with the other runs of its page."""
        return EXPECTATIONS

    def evidence(self, setting: Setting, folder: Path) -> Evidence:
        """The evidence of the run in `folder`."""
        return read_evidence(folder, filmed=setting.loading.filmed)

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """Why the run in `folder` must not count, or None."""
        return reason_against(evidence, claim(setting), self.gates())

    def analyse(self, folder: Path) -> None:
        """Do the slow work that needs only the film of the run in `folder`. It is done while the run ends and nothing
        is measured, or on other cores."""
        analyse_film(folder)

    def may_be_prepared(self, setting: Setting, folder: Path) -> bool:
        """Whether a load may be prepared while another is ending. It may not if its network changes with time, since
        this time would pass meanwhile, nor if the method's programs observe the load from its beginning."""
        return not setting.network.follows_clock and self.observers(setting, folder) == Observers()

    def prepare(
        self,
        setting: Setting,
        layout: Layout | None,
        folder: Path,
        attempt: int = 1,
        *,
        idle: IdlePriority | None = None,
    ) -> Load | None:
        """Begin to prepare a load for `make` while another is ending; None if that is not allowed (`may_be_prepared`).

        The load has `idle` priority, if given, until it is lifted.
        """
        if not self.may_be_prepared(setting, folder):
            return None
        return Load(_of_attempt(setting, attempt), folder, layout=layout, idle=idle)

    def make(
        self,
        setting: Setting,
        circumstances: Circumstances,
        folder: Path,
        attempt: int = 1,
        *,
        preparation: Load | None = None,
        moments: Moments = NO_CALLS,
    ) -> None:
        """Load the page once in a fresh browser with a fresh replay; the evidence is in `folder`.

        Losses differ between attempts. `preparation` is the load that `prepare` has begun, if any; the run itself
        begins now. `moments.quiet` returns whether the preparation of the next run has begun.
        """
        preparation_s = None if preparation is None else round(preparation.age_s(), 3)
        next_prepared_at_s: list[float] = []

        def begin_next() -> None:
            at_s = time.time()
            if moments.quiet():
                next_prepared_at_s.append(at_s)

        started_at, clock, started = now_iso(), time.time(), time.monotonic()
        layout = circumstances.layout
        failure = self.carry_out(
            _of_attempt(setting, attempt),
            folder,
            layout,
            preparation,
            Moments(begin_next, moments.over, circumstances.sharing),
        )
        seconds = time.monotonic() - started
        sharing = circumstances.sharing
        loads = sharing.concurrent_loads
        document = {
            "started_at": started_at,
            "seconds": round(seconds, 3),
            "clock_shift_s": round(time.time() - clock - seconds, 3),
            "preparation_s": preparation_s,
            "next_prepared_at_s": next(iter(next_prepared_at_s), None),
            "failure": failure,
            "quiet_ms": setting.quiet_ms,
            "block": circumstances.block,
            "machine": circumstances.machine,
            "lane": circumstances.lane,
            "sitting": circumstances.sitting,
            "concurrent_loads": None if loads is None else round(loads, 2),
            "started_idle": sharing.started_idle,
            "lane_cores": None if circumstances.lane is None else sorted(os.sched_getaffinity(0)),
            "canary": asdict(circumstances.canary) if circumstances.canary else None,
            "slowness": round(circumstances.slowness, 3),
        }
        for file in folder.glob("[!.]*"):
            sync(file)  # the film may still be being written; its writer syncs it
        sync(folder)
        write_json(folder / ATTEMPT, document)
        sync(folder.parent)

    def carry_out(
        self,
        setting: Setting,
        folder: Path,
        layout: Layout | None,
        preparation: Load | None,
        moments: Moments,
    ) -> str | None:
        """Make the run itself; returns why the replay failed, or None (see `measure.run.load.load`)."""
        return load(
            setting,
            folder,
            layout=layout,
            observers=self.observers(setting, folder),
            preparation=preparation,
            moments=moments,
        )

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        """The row of an attempt at `run`. Its evidence is in `folder`, inside the folder of the `campaign`.

        Judging the same evidence again gives the same row.
        """
        document = read_json(folder / ATTEMPT)
        up_mbps, down_mbps = map(setting.network.constant_rate_of, (UP, DOWN))
        evidence = replace(self.evidence(setting, folder), up_mbps=up_mbps, down_mbps=down_mbps)
        reason = self.reason_against(setting, folder, evidence)
        if evidence.cross_traffic:
            write_json(folder / CROSS_TRAFFIC, {"flows": [asdict(flow) for flow in evidence.cross_traffic]})
        canary = document["canary"] or {}
        return Row(
            site=run.site,
            network=run.network,
            protocol=run.protocol,
            run=run.number,
            attempt=attempt,
            valid=reason is None,
            reason=reason,
            metrics=read_metrics(evidence),
            **asdict(evidence.request_counts),
            unrecorded=evidence.unrecorded,
            started_at=document["started_at"],
            seconds=document["seconds"],
            folder=str(folder.relative_to(campaign)),
            block=document["block"],
            machine=document["machine"],
            lane=document.get("lane"),
            sitting=document.get("sitting"),
            concurrent_loads=document.get("concurrent_loads"),
            browser=run.browser,
            canary_cpu_ms=canary.get("cpu_ms"),
            canary_page_ms=canary.get("page_ms"),
            quiet_ms=document.get("quiet_ms"),
            next_prepared_ms=evidence.next_prepared_ms,
            h3_request_share=share_of(H3, evidence.har_protocols) if setting.protocol.alternative_service else None,
            h3_byte_share=share_of(H3, evidence.har_bytes) if setting.protocol.alternative_service else None,
            readings=evidence.readings,
        )


PAGES = Method(takes_alternatives=True, sees_tunnels=True)
# HTTP over QUIC, as ALPN names it.
H3 = "h3"


def _of_attempt(setting: Setting, attempt: int) -> Setting:
    """`setting` with a seed of its own for this attempt."""
    return replace(setting, seed=None if setting.seed is None else setting.seed + attempt)


def cross_traffic_claim(flows: Iterable[Flow]) -> tuple[tuple[str, str, str], ...]:
    """The background flows of a run in the form of a claim (`measure.run.gates.Claim`)."""
    return tuple((flow.name, flow.direction, flow.protocol.congestion_control) for flow in flows)


def is_made(folder: Path) -> bool:
    """Whether the attempt in `folder` is complete."""
    return (folder / ATTEMPT).exists()


def claim(setting: Setting) -> Claim:
    """The claim of a run of `setting`: what its gates check."""
    device = device_of(setting.loading.browser)
    browser_window = window(setting.site, device)
    return Claim(
        http_version=setting.protocol.http_version,
        servers=frozenset(setting.site.servers),
        hosts=frozenset(setting.site.addresses),
        window=(browser_window.width, browser_window.height),
        filmed=setting.loading.filmed,
        limit_s=setting.loading.limit_s,
        http1_servers=setting.http1_servers,
        cross_traffic=cross_traffic_claim(flows_of(setting.network)),
        further_versions=setting.protocol.http_versions[1:],
        knows_alternative=setting.protocol.has_known_alternative,
        device=device,
        scripted=setting.site.page_script is not None,
    )
