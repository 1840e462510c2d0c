"""How flows of one protocol share a link with flows of another, after Kakhki et al. (IMC 2017, section 5.1).

A run is a replay without a browser: a number of bulk flows of one protocol and a number of another begin together, each
between its own hosts (`replay.cross_traffic_flows`), and share the emulated network. Each receiver notes every 50 ms
how many bytes have arrived. A mix of flows takes the place of a site in other campaigns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError, Misuse
from base.files import write_json
from dataset.reasons import Reason
from dataset.run_files import CROSS_TRAFFIC_SAMPLES, REPLAY_EVIDENCE, REPLAY_LOG
from measure.campaign import method
from measure.campaign.campaign import Campaign
from measure.campaign.method import Method
from measure.host.affinity import Layout
from measure.instruments.cross_traffic import read_series
from measure.run.aliases import choose_protocol, choose_protocols
from measure.run.evidence import Evidence, last_line, read_circumstances
from measure.run.gates import CLOCK_SHIFTED, CROSS_TRAFFIC_MISSING, MACHINE_BUSY, REPLAY, Gate, reason_against
from measure.run.load import Load, Moments
from measure.run.setting import Loading, Setting
from record import collection
from replay import ReplaySpec, run
from servers.registry import require_served
from studies.campaign import networks_before
from studies.fairness.defaults import AGAINST, MIXES, NETWORKS, PROTOCOLS, SECONDS
from studies.fairness.mixes import mix_name, mix_named
from studies.study import RUNS, Measurement, Request
from tuning import networks, protocols
from tuning.cross_traffic import Flow
from tuning.protocols import Protocol
from tuning.settings import choose

STUDY = "fairness"
REPEATS = 2
# A run counts only if its flows were observed for at least this share of its time.
LEAST_SEEN = 0.95


@dataclass(frozen=True)
class FairnessMethod(Method):
    """Runs flows of the protocol under test against flows of another, for `seconds`."""

    against: Protocol | None = None
    seconds: float = SECONDS

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        assert self.against
        return {"against": self.against.name, "against_settings": asdict(self.against), "seconds": self.seconds}

    def seconds_of_run(self) -> float | None:
        """See `Method`."""
        return self.seconds

    def flow_protocols(self, under_test: Iterable[Protocol]) -> Sequence[Protocol]:
        """See `Method`."""
        assert self.against
        return [self.served(protocol) for protocol in (*under_test, self.against)]

    def gates(self) -> Sequence[Gate]:
        """See `Method`."""
        return (REPLAY, CROSS_TRAFFIC_MISSING, MACHINE_BUSY, CLOCK_SHIFTED)

    def may_be_prepared(self, setting: Setting, folder: Path) -> bool:
        """See `Method`."""
        return False

    def carry_out(
        self,
        setting: Setting,
        folder: Path,
        layout: Layout | None,
        preparation: Load | None,
        moments: Moments,
    ) -> str | None:
        """See `Method`."""
        spec = ReplaySpec(
            setting.site.folder,
            setting.network,
            protocols.load()["tcp"],  # for a page's servers, which receive no requests
            seed=setting.seed,
            flows=self.flows(setting),
            cross_traffic_log=folder / CROSS_TRAFFIC_SAMPLES,
            server_cores=layout.servers if layout else (),
            emulator_cores=layout.emulator if layout else (),
        )
        log = folder / REPLAY_LOG
        try:
            with log.open("wb") as output:
                outcome = run(spec, ["sleep", f"{self.seconds:g}"], stdout=output.fileno(), stderr=output.fileno())
        except EyelevelError as error:
            last = last_line(log)
            return f"{error}; the last line of {REPLAY_LOG}: {last}" if last else str(error)
        write_json(folder / REPLAY_EVIDENCE, outcome.evidence)
        return None

    def analyse(self, folder: Path) -> None:
        """See `Method`."""

    def evidence(self, setting: Setting, folder: Path) -> Evidence:
        """See `Method`."""
        return read_circumstances(folder, load_s=self._seen_s(folder))

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """See `Method`."""
        claim = replace(method.claim(setting), cross_traffic=method.cross_traffic_claim(self.flows(setting)))
        if reason := reason_against(evidence, claim, self.gates()):
            return reason
        began_s, ended_s = self._seen_s(folder) or (0.0, 0.0)
        if ended_s - began_s < LEAST_SEEN * self.seconds:
            return Reason(STUDY, f"the flows were seen for {ended_s - began_s:.1f} of {self.seconds:g} s")
        return None

    def flows(self, setting: Setting) -> tuple[Flow, ...]:
        """The flows of a run: first those of the protocol under test, then the others."""
        mix = mix_named(setting.site.name)
        assert mix and self.against
        under_test, against = self.served(setting.protocol), self.served(self.against)
        return (*(Flow(under_test.name, under_test),) * mix[0], *(Flow(against.name, against),) * mix[1])

    @staticmethod
    def served(protocol: Protocol) -> Protocol:
        """`protocol` completed with the values that its server needs. Raises EyelevelError."""
        return require_served([protocol])[0]

    def _seen_s(self, folder: Path) -> tuple[float, float] | None:
        """The first and the last time (s since 1970) at which the flows were observed; None if they never were."""
        series = read_series(folder)
        return (series[0][0][0], series[0][-1][0]) if series else None


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    known = protocols.load()
    kept = networks_before(request)
    chosen = kept if kept and request.net is None else choose("network", request.net or NETWORKS, networks.load())
    over = choose_protocols(request.names("proto", "protocols", PROTOCOLS), known)
    against = choose_protocol(request.options["against"] or request.own_setting("against", AGAINST), known)
    mixes = _mixes(request.options["mixes"] or ",".join(_before(request)) or MIXES)
    for network in chosen:
        if network.has_cross_traffic:
            raise EyelevelError(
                f"{network.name} has background flows; choose a network without them, since fairness adds its own"
            )
    for protocol in (*over, against):
        _require_flow(protocol)
    how = FairnessMethod(against=against, seconds=request.options["seconds"] or request.own_setting("seconds", SECONDS))
    sites = [collection.load_site(mix_name(*mix)) for mix in mixes]
    chosen_campaign = Campaign(
        folder=request.folder,
        sites={site.name: site for site in sites},
        networks={network.name: network for network in [*kept, *chosen]},
        protocols={protocol.name: protocol for protocol in over},
        runs=request.number_of_runs(RUNS),
        seed=request.plan_seed,
        loading=Loading(repeatable=False, filmed=False, browser=request.browser_name),
        method=how,
        repeats=request.setting("repeats", REPEATS),
        study={"name": STUDY},
    )
    return Measurement(chosen_campaign, summary=lambda: [f"measured: {chosen_campaign.folder}"])


def _before(request: Request) -> list[str]:
    """The mixes of the existing campaign."""
    sites = request.document.settings.sites if request.document else ()
    return ["x".join(map(str, mix)) for site in sites if (mix := mix_named(site))]


def _mixes(text: str) -> list[tuple[int, int]]:
    """The mixes that `text` names. Raises EyelevelError."""
    mixes = []
    for word in text.replace(",", " ").split():
        if not (mix := mix_named(f"fairness-{word}")):
            raise Misuse(f"write a mix as 1x2 (one flow against two others), not {word!r}")
        mixes.append(mix)
    return list(dict.fromkeys(mixes))


def _require_flow(protocol: Protocol) -> None:
    """Raises EyelevelError if `protocol` cannot be used for a flow."""
    server = FairnessMethod.served(protocol)
    if not protocol.in_kernel and set(server.connection_options) - {"BYTE"}:
        tags = ", ".join(server.connection_options)
        raise EyelevelError(f"{protocol.name} needs the connection options {tags}, which the flows' client cannot send")
