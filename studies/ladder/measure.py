"""The ladder's campaign: every rung, and three conditions, in the same blocks.

Two conditions are variants of a network, on which two of the rungs are measured, too: `+arq`, whose link retransmits
the network's losses, so that the transport sees a delay instead; and `+slow`, with the browser limited to a share of
the processor. The third is the highest rung in a browser that knows nothing of the servers. Rungs and conditions that
this machine cannot measure are left out by name, not replaced.
"""

import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from base.errors import EyelevelError, Misuse
from base.processes import last_line_of
from base.text import unknown
from measure.campaign.campaign import Campaign, Selection
from measure.campaign.method import Method
from measure.run.aliases import choose_protocols
from measure.run.load import Observers
from measure.run.setting import Loading, Setting
from record.collection import choose_sites
from record.site import Site
from replay.trial import require_replayed
from studies.campaign import study_campaign
from studies.ladder import RUNS
from studies.ladder.rungs import (
    ABOVE,
    ARQ,
    BELOW,
    CONDITIONS,
    HIGHEST,
    RUNGS,
    SLOW,
    UNKNOWN,
    base_network,
    suffix_of,
)
from studies.study import Measurement, Request
from tuning import protocols
from tuning.networks import Network

STUDY = "ladder"

# The share of one processor for the browser and its film in slowed runs: a page then takes up to three times as long,
# and is still filmed without a gap.
PROCESSOR_SHARE = 0.5
# The time by which the link's retransmission delays a lost packet, in round trips of the network. It is realistic for a
# link, and mostly too short for TCP's retransmission timeout to expire (at least a round trip and 200 ms in Linux).
# QUIC's probe timeout (RFC 9002, section 6.2.1: a round trip, four times its variation, and 25 ms) may expire first;
# the sender then sends a packet again, but does not reduce its window.
RETRANSMIT_ROUND_TRIPS = 0.25
# This command runs the command that follows it with a share of the processor.
QUOTA = (sys.executable, "-m", "measure.host.quota", f"{PROCESSOR_SHARE:g}")


@dataclass(frozen=True)
class Missing:
    """A rung or a condition that is not measured: its name, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        what = f"the condition {self.name}" if self.name in CONDITIONS else self.name
        return f"{what}: {self.reason}"


@dataclass(frozen=True)
class LadderMethod(Method):
    """Loads pages like a campaign; on networks with SLOW, the browser has only a share of the processor."""

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"processor_share": PROCESSOR_SHARE}

    def observers(self, setting: Setting, folder: Path) -> Observers:
        """See `Method`."""
        slowed = suffix_of(setting.network.name) == SLOW
        return Observers(around=QUOTA if slowed else ())


def replay_refusal(site: Site, name: str) -> str:
    """Why this machine cannot serve `site` over the protocol `name`, according to a short replay; empty if it can."""
    try:
        (served,) = choose_protocols([name], protocols.load())
        require_replayed(site, served)
    except EyelevelError as error:
        return str(error)
    return ""


def quota_refusal(quota: Sequence[str] = QUOTA) -> str:
    """Why this machine cannot limit a browser to a share of the processor with the command `quota`; empty if it can."""
    completed = subprocess.run([*quota, "true"], capture_output=True, text=True, check=False)
    return last_line_of(completed.stderr, f"status {completed.returncode}") if completed.returncode else ""


@dataclass(frozen=True)
class Machine:
    """The limits of a machine, as functions. `replay_refusal` takes a site and a protocol's name, and returns why the
    machine cannot serve them; `quota_refusal` returns why it cannot limit a browser to a share of the processor. The
    text is empty if it can."""

    replay_refusal: Callable[[Site, str], str] = replay_refusal
    quota_refusal: Callable[[], str] = quota_refusal


THIS_MACHINE = Machine()


@dataclass(frozen=True)
class Scope:
    """The scope of a ladder.

    `rungs`: its rungs; `conditions`: the possible conditions; `usual`: whether conditions are measured only on the
    networks that are usual for them, instead of all; `missing`: the rungs and conditions that are not measured.
    """

    rungs: Sequence[str]
    conditions: Sequence[str]
    usual: bool
    missing: Sequence[Missing]


def campaign(request: Request, machine: Machine = THIS_MACHINE) -> Measurement:
    """The measurement for `request`, as far as `machine` can make it. Raises EyelevelError."""
    # A resumed campaign keeps its rungs: a rung that was added later would have blocks of its own.
    scope = scope_of_begun(request, request.document.study) if request.document else scope_of_new(request, machine)
    if len(scope.rungs) < 2:
        reasons = "; ".join(map(str, scope.missing))
        raise EyelevelError(f"a ladder needs two rungs at least{f', and cannot have {reasons}' if reasons else ''}")
    planned = ladder_campaign(request, scope)
    return Measurement(planned, announcement(planned, scope.missing), lambda: [f"measured: {planned.folder}"])


def scope_of_begun(request: Request, study: Mapping[str, Any]) -> Scope:
    """The scope of an existing campaign, whose document has `study`. Raises EyelevelError."""
    wanted_conditions(request.options.get("conditions"))
    missing = [Missing(**entry) for entry in study.get("missing", ())]
    chosen = rungs(request, missing)
    return Scope(chosen, tuple(study.get("conditions", ())), bool(study["usual_conditions"]), missing)


def scope_of_new(request: Request, machine: Machine) -> Scope:
    """The scope that `request` asks for, as far as `machine` can measure it. Raises EyelevelError."""
    wanted = wanted_conditions(request.options.get("conditions"))
    chosen = rungs(request, ())
    over = [*chosen, UNKNOWN] if "unknown" in wanted and HIGHEST in chosen else chosen
    refused = {one.name: one.reason for one in refusals(request, over, machine)}
    able = [name for name in chosen if name not in refused]
    reasons = {name: condition_refusal(name, able, refused, machine) for name in wanted}
    absent = {name: reason for name, reason in refused.items() if name != UNKNOWN}
    absent |= {name: reason for name, reason in reasons.items() if reason}
    possible = tuple(name for name in wanted if name not in absent)
    usual = not request.options.get("conditions")
    return Scope(able, possible, usual, [Missing(name, reason) for name, reason in absent.items()])


def wanted_conditions(text: str | None) -> tuple[str, ...]:
    """The conditions that `text` names; all conditions if it is None or empty. Raises EyelevelError."""
    names = (text or ",".join(CONDITIONS)).replace(",", " ").split()
    if names == ["none"]:
        return ()
    if strange := [name for name in names if name not in CONDITIONS]:
        raise Misuse(unknown("condition", strange[0], [*CONDITIONS, "none"]))
    return tuple(dict.fromkeys(names))


def rungs(request: Request, missing: Collection[Missing]) -> list[str]:
    """The protocols of the ladder's rungs, in its order: all unless `request` or its campaign names some.

    Raises EyelevelError if a name is not a rung.
    """
    order = [rung.protocol for rung in RUNGS]
    begun = [name for name in (request.document.settings.protocols if request.document else ()) if name in order]
    names = request.proto.replace(",", " ").split() if request.proto else begun or order
    if strange := [name for name in names if name not in order]:
        raise Misuse(unknown("rung", strange[0], order))
    if refused := [one for one in missing if one.name in names]:
        raise EyelevelError(f"this campaign is without {refused[0].name} ({refused[0].reason}); begin another")
    return [name for name in order if name in names]


def refusals(request: Request, names: Sequence[str], machine: Machine = THIS_MACHINE) -> list[Missing]:
    """Those of the protocols `names` that `machine` cannot serve. Raises EyelevelError if it can serve none."""
    site = choose_sites(request.names("sites", "sites"))[0]
    missing = [Missing(name, reason) for name in names if (reason := machine.replay_refusal(site, name))]
    if len(missing) == len(names):
        raise EyelevelError(f"no rung can be replayed on this machine; {missing[0]}")
    return missing


def condition_refusal(name: str, over: Collection[str], refused: Mapping[str, str], machine: Machine) -> str:
    """Why the condition `name` cannot be measured with the rungs `over`; empty if it can. `refused`: protocol → why
    `machine` cannot serve it."""
    needed = (HIGHEST,) if name == "unknown" else (BELOW, ABOVE)
    if not set(needed) <= set(over):
        return f"needs {' and '.join(needed)}"
    if name == "unknown":
        return refused.get(UNKNOWN, "")
    return machine.quota_refusal() if name == "slow" else ""


def ladder_campaign(request: Request, scope: Scope) -> Campaign:
    """The campaign of `scope`, with the sites and networks that `request` names."""
    unknown = [UNKNOWN] if "unknown" in scope.conditions else []

    def variants_of(network: Network) -> list[Network]:
        return variants(network, scope.conditions, usual=scope.usual)

    planned = study_campaign(
        replace(request, proto=",".join([*scope.rungs, *unknown])),
        STUDY,
        LadderMethod(),
        runs=RUNS,
        change=lambda network: [network, *variants_of(network)],
    )
    assert planned.selection
    plain = tuple(name for name in planned.selection.networks if base_network(name) == name)
    companions = {
        name: (
            *product([one.name for one in variants_of(planned.networks[name])], (BELOW, ABOVE)),
            *((name, protocol) for protocol in unknown),
        )
        for name in plain
    }
    return replace(
        planned,
        loading=Loading(browser=request.browser_name),
        films=request.films,
        selection=Selection(planned.selection.sites, plain, tuple(scope.rungs)),
        companions=companions,
        study={
            "name": STUDY,
            "conditions": list(scope.conditions),
            "usual_conditions": scope.usual,
            "missing": [asdict(one) for one in scope.missing],
        },
    )


def variants(network: Network, possible: Collection[str], *, usual: bool = False) -> list[Network]:
    """`network` under each `possible` condition that applies to it. A link can only repair losses of single packets,
    and only if it does not repair them already. `usual`: leave out the slow browser on a network with losses, since
    losses scatter times more than a slow browser changes them."""
    changed = []
    is_repairable = network.retransmit_ms is None and not (network.burst_packets or network.gilbert_elliott)
    if "arq" in possible and network.loss and is_repairable:
        repaired = RETRANSMIT_ROUND_TRIPS * network.min_rtt_ms
        changed.append(replace(network, name=network.name + ARQ, retransmit_ms=repaired))
    if "slow" in possible and not (usual and network.loss):
        changed.append(replace(network, name=network.name + SLOW))
    return changed


def announcement(planned: Campaign, missing: Iterable[Missing]) -> list[str]:
    """The lines for the terminal on what is measured and what is not."""
    assert planned.selection
    lines = [f"the ladder: {' → '.join(planned.selection.protocols)}"]
    for network, conditions in planned.companions.items():
        if conditions:
            names = [f"{name} {protocol}" for name, protocol in conditions]
            lines.append(f"in the blocks of {network}, too: {', '.join(names)}")
    return [*lines, *(f"not measured: {one}" for one in missing)]
