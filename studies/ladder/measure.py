"""The ladder's campaign: every rung, and two conditions, in the same blocks.

A condition is a network's variant that two of the rungs are measured behind, too: `+arq`, whose link retransmits what
the network loses, so that the transport sees a delay instead; and `+slow`, with the browser limited to a share of the
processor. What this machine cannot do is left out by name, not replaced.
"""

import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from base.errors import EyelevelError
from measure.campaign.campaign import Campaign, Selection
from measure.campaign.method import Method
from measure.run.aliases import choose_protocols
from measure.run.films import FilmPolicy
from measure.run.load import Instruments
from measure.run.setting import Loading, Setting
from record.collection import choose_sites
from replay import ReplaySpec
from replay import run as replay
from studies.ladder.rungs import ABOVE, ARQ, BELOW, CONDITIONS, RUNGS, SLOW, base_network, suffix_of
from studies.study import Measurement, Request, study_campaign
from tuning import protocols
from tuning.networks import Network
from tuning.protocols import Protocol

STUDY = "ladder"
RUNS = 5

# Of one processor, for the browser and its film in slowed runs: a page takes up to three times as long by it, and is
# still filmed without a gap.
PROCESSOR_SHARE = 0.5
# How long after a loss the link has delivered the packet all the same, in round trips of the network: long enough to be
# a link's repair rather than none, and too short for a timeout of either transport (RFC 6298, RFC 9002: one round trip
# at least, and more by its variation).
RETRANSMIT_ROUND_TRIPS = 0.25
QUOTA = "measure.host.quota"


@dataclass(frozen=True)
class Missing:
    """What is not measured: a rung or a condition by its name, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        what = f"the condition {self.name[1:]}" if self.name in CONDITIONS.values() else self.name
        return f"{what}: {self.reason}"


@dataclass(frozen=True)
class LadderMethod(Method):
    """Loads pages as a campaign does, behind networks with SLOW by a browser that has a share of the processor."""

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"processor_share": PROCESSOR_SHARE}

    def instruments(self, setting: Setting, folder: Path) -> Instruments:
        """See `Method`."""
        slowed = suffix_of(setting.network.name) == SLOW
        return Instruments(around=quota_command() if slowed else ())


def quota_command() -> tuple[str, ...]:
    """The command that gives another, which follows it, a share of the processor."""
    return (sys.executable, "-m", QUOTA, f"{PROCESSOR_SHARE:g}")


def campaign(request: Request) -> Measurement:
    """What `request` asks to be measured. Raises EyelevelError."""
    wanted = wanted_conditions(request.options.get("conditions"))
    # A campaign that was begun goes on with what it has.
    known = [Missing(**entry) for entry in (request.document.study["missing"] if request.document else ())]
    chosen = rungs(request, known)
    named = replace(request, proto=",".join(protocol.name for protocol in chosen))
    if request.document:
        # A rung that could not be measured at first would have blocks of its own later.
        suffixes = tuple(request.document.study["conditions"])
        missing = known
    else:
        missing = refusals(named, chosen)
        refused = {one.name for one in missing}
        chosen = [protocol for protocol in chosen if protocol.name not in refused]
        named = replace(request, proto=",".join(protocol.name for protocol in chosen))
        suffixes, without = conditions({protocol.name for protocol in chosen}, wanted)
        missing += without
    if len(chosen) < 2:
        reasons = "; ".join(map(str, missing))
        raise EyelevelError(f"a ladder needs two rungs at least{f', and cannot have {reasons}' if reasons else ''}")
    planned = ladder_campaign(named, suffixes, missing)
    return Measurement(planned, announcement(planned, missing), lambda: [f"measured: {planned.folder}"])


def wanted_conditions(text: str | None) -> tuple[str, ...]:
    """The suffixes of the conditions that `text` names, all unless given. Raises EyelevelError."""
    names = (text or ",".join(CONDITIONS)).replace(",", " ").split()
    if names == ["none"]:
        return ()
    if unknown := [name for name in names if name not in CONDITIONS]:
        raise EyelevelError(f"--conditions takes {', '.join(CONDITIONS)} or none, not {unknown[0]!r}")
    return tuple(CONDITIONS[name] for name in names)


def rungs(request: Request, missing: Collection[Missing]) -> list[Protocol]:
    """The protocols that are to be the ladder's rungs, in its order: all unless `request` or its campaign names some.

    Raises EyelevelError when one is no rung.
    """
    order = [rung.protocol for rung in RUNGS]
    names = request.names("proto", "protocols", order)
    names = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    if strange := [name for name in names if name not in order]:
        raise EyelevelError(f"{strange[0]} is no rung of the ladder; choose among {', '.join(order)}")
    if refused := [one for one in missing if one.name in names]:
        raise EyelevelError(f"this campaign goes on without {refused[0].name} ({refused[0].reason}); begin another")
    known = protocols.load()
    return [known[name] for name in order if name in names]


def refusals(request: Request, chosen: Sequence[Protocol]) -> list[Missing]:
    """Which of `chosen` this machine cannot do, as a short replay over each finds out. Raises EyelevelError when it
    can do none."""
    site = choose_sites(request.names("site", "sites"))[0]
    network = Network("probe", min_rtt_ms=0)
    missing = []
    for protocol in chosen:
        try:
            (served,) = choose_protocols([protocol.name], protocols.load())
            with TemporaryDirectory(prefix="ladder-") as folder:
                replay(ReplaySpec(site.folder, network, served, Path(folder) / "requests"), ["true"])
        except EyelevelError as error:
            missing.append(Missing(protocol.name, str(error)))
    if chosen and len(missing) == len(chosen):
        raise EyelevelError(f"no rung can be replayed on this machine; {missing[0]}")
    return missing


def conditions(over: Collection[str], wanted: Iterable[str]) -> tuple[tuple[str, ...], list[Missing]]:
    """Which of the `wanted` conditions can be measured with the rungs `over`, and which cannot, and why."""
    possible, missing = [], []
    for suffix in wanted:
        reason = ""
        if not {BELOW, ABOVE} <= set(over):
            reason = f"needs the rungs {BELOW} and {ABOVE}"
        elif suffix == SLOW:
            reason = quota_refusal()
        if reason:
            missing.append(Missing(suffix, reason))
        else:
            possible.append(suffix)
    return tuple(possible), missing


def quota_refusal() -> str:
    """Why this machine cannot limit a browser to a share of the processor; nothing when it can."""
    completed = subprocess.run([*quota_command(), "true"], capture_output=True, text=True, check=False)
    lines = completed.stderr.strip().splitlines()
    return "" if completed.returncode == 0 else (lines[-1] if lines else f"status {completed.returncode}")


def ladder_campaign(request: Request, suffixes: Collection[str], missing: Sequence[Missing]) -> Campaign:
    """The campaign of the sites, networks and rungs that `request` names, with the conditions `suffixes`."""

    def variants(network: Network) -> list[Network]:
        return [network, *conditions_of(network, suffixes)]

    planned = study_campaign(request, STUDY, LadderMethod(), runs=RUNS, change=variants)
    assert planned.selection
    plain = tuple(name for name in planned.selection.networks if base_network(name) == name)
    films = FilmPolicy(**(request.document.films if request.document else {}))
    kept, quality = (request.options.get(name) for name in ("films", "quality"))
    return replace(
        planned,
        loading=Loading(browser=request.browser_name),
        films=FilmPolicy(kept or films.kept, quality or films.quality),
        selection=Selection(planned.selection.sites, plain, planned.selection.protocols),
        companions={
            name: tuple(
                (variant.name, protocol)
                for variant in conditions_of(planned.networks[name], suffixes)
                for protocol in (BELOW, ABOVE)
            )
            for name in plain
        },
        study={"name": STUDY, "conditions": list(suffixes), "missing": [asdict(one) for one in missing]},
    )


def conditions_of(network: Network, suffixes: Collection[str]) -> list[Network]:
    """`network` under each of the conditions `suffixes` that there is for it: a link repairs only what it loses."""
    variants = []
    if ARQ in suffixes and network.loss:
        repaired = RETRANSMIT_ROUND_TRIPS * network.min_rtt_ms
        variants.append(replace(network, name=network.name + ARQ, retransmit_ms=repaired))
    if SLOW in suffixes:
        variants.append(replace(network, name=network.name + SLOW))
    return variants


def announcement(planned: Campaign, missing: Iterable[Missing]) -> list[str]:
    """What is measured and what is not, in lines for a person."""
    lines = [f"the ladder: {' → '.join(planned.protocols)}"]
    variants = [name for name in planned.networks if base_network(name) != name]
    if variants:
        lines.append(f"in the same blocks, over {BELOW} and {ABOVE}: {', '.join(variants)}")
    return [*lines, *(f"not measured: {one}" for one in missing)]
