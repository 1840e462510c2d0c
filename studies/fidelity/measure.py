"""The campaign of fidelity: each site only on the network and over the protocol of its live loads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.hypotheses import of_campaign
from analysis.runs import load
from analysis.text import label, plural, share
from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.structure import structured, unstructured
from dataset.metrics import METRICS
from dataset.plan import PlannedBlock
from dataset.table import CampaignDocument, Condition, require_document
from measure.campaign.campaign import Campaign
from measure.live import read_live
from measure.live.loads import settings_of
from measure.run.aliases import choose_protocols
from measure.run.setting import Loading
from record import collection
from record.collection import choose_sites
from record.live import LiveLoads
from record.site import Site
from studies.fidelity import machine
from studies.fidelity.errors import errors, overall, write_errors
from studies.study import REPEATS, RUNS, Measurement, Request
from tuning import networks, protocols
from tuning.networks import Network
from tuning.protocols import Protocol
from tuning.settings import Catalogue, choose_one

STUDY = "fidelity"
# One protocol for each version of HTTP that servers here speak.
PROTOCOLS = ("tcp+", "quic")
# A version that no server here speaks is replayed over the next version, and the output says so.
REPLAYED_AS = {"http/1.1": "h2"}


@dataclass(frozen=True)
class Compared:
    """A site's live loads, and the conditions (network and protocol) of the replays to compare with them."""

    live: LiveLoads
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class FidelityCampaign(Campaign):
    """A campaign in which each site has conditions (network and protocol) of its own."""

    conditions: Mapping[str, Sequence[Condition]] = field(default_factory=dict)

    def plan(self) -> list[PlannedBlock]:
        """See `Campaign`."""
        blocks = (
            tuple(run for run in block if (run.network, run.protocol) in self.conditions[run.site])
            for block in super().plan()
        )
        return [block for block in blocks if block]


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    before = compared_sites(request.document) if request.document else {}
    names = request.sites or list(before) or names_with_live_loads()
    if not names:
        raise EyelevelError("no site has live loads; record one with them: make record SITES=https://… LIVE=5 NET=…")
    sites = choose_sites(names)
    over = choose_protocols(request.proto or request.setting("protocols", PROTOCOLS), protocols.load())
    known, compared = networks.load(), dict(before)
    for site in sites:
        if site.name not in before or request.net or request.proto:
            new = compare(site, known, over, request.net)
            conditions = before[site.name].conditions if site.name in before else ()
            compared[site.name] = Compared(new.live, tuple(dict.fromkeys([*conditions, *new.conditions])))
    planned = fidelity_campaign(request, [*choose_sites(list(before)), *sites] if before else sites, compared, known)
    announcement = [line for name in planned.sites for line in sentences(name, compared[name])]
    return Measurement(planned, announcement, lambda: summary(planned.folder))


def fidelity_campaign(
    request: Request, sites: Sequence[Site], compared: Mapping[str, Compared], known: Mapping[str, Network]
) -> FidelityCampaign:
    """The campaign that replays `sites` under the conditions in `compared`. A resumed campaign keeps its networks;
    others come from `known`."""
    conditions = list(dict.fromkeys(condition for one in compared.values() for condition in one.conditions))
    begun = request.document.settings.networks if request.document else {}
    measured = {
        name: structured(begun[name], Network, f"the network {name}") if name in begun else known[name]
        for name, _ in conditions
    }
    over = choose_protocols(list(dict.fromkeys(protocol for _, protocol in conditions)), protocols.load())
    from_film = {metric.name for metric in METRICS if metric.from_film}
    return FidelityCampaign(
        folder=request.folder,
        sites={site.name: site for site in sites},
        networks=measured,
        protocols={protocol.name: protocol for protocol in over},
        runs=request.number_of_runs(RUNS),
        seed=request.plan_seed,
        loading=Loading(
            filmed=any(from_film.intersection(load.metrics) for one in compared.values() for load in one.live.loads),
            browser=request.browser_name,
        ),
        repeats=request.setting("repeats", REPEATS),
        study={"name": STUDY, "sites": {name: unstructured(one) for name, one in compared.items()}},
        conditions={name: one.conditions for name, one in compared.items()},
    )


def compared_sites(document: CampaignDocument) -> dict[str, Compared]:
    """The sites in the campaign of `document`, with their live loads. Raises EyelevelError."""
    where = "campaign.json is broken: study.sites"
    return {name: structured(one, Compared, f"{where}.{name}") for name, one in document.study["sites"].items()}


def names_with_live_loads() -> list[str]:
    """The names of the recorded sites that have live loads."""
    return [name for name in collection.recorded_names() if read_live(collection.load_site(name))]


def compare(site: Site, known: Catalogue[Network], over: Sequence[Protocol], net: str | None = None) -> Compared:
    """The live loads of `site`, and the conditions of the replays to compare with them.

    The network is `net` if it is given, else that of the live loads. The protocols are those of `over` that speak the
    live loads' version of HTTP. Raises EyelevelError if the network is unknown, or if no protocol speaks that version.
    """
    live = read_live(site)
    if live is None:
        raise EyelevelError(f"{site.name} has no live loads to compare with; record it with them: LIVE=5")
    network = choose_one("network", net, known) if net else recorders_network(site.name, live, known)
    version = replayed_version(live)
    chosen = tuple((network.name, protocol.name) for protocol in over if protocol.http_version == version)
    if not chosen:
        raise EyelevelError(f"{site.name} was loaded live over {version}; name a protocol that speaks it with PROTO=")
    return Compared(live, chosen)


def recorders_network(name: str, live: LiveLoads, known: Mapping[str, Network]) -> Network:
    """The network of the `live` loads of the site `name`. Raises EyelevelError."""
    if live.network is None:
        raise EyelevelError(f"the network of the live loads of {name} is unknown; name it with NET=")
    if live.network not in known:
        raise EyelevelError(
            f"the live loads of {name} went over {live.network}, which is not a network here; name its folder with "
            "TUNING=, or another network with NET="
        )
    now, then = settings_of(known[live.network]), live.network_settings
    # A setting that is None on one side may be missing on the other.
    if changed := sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key)):
        key = changed[0]
        raise EyelevelError(
            f"{live.network} has another {key} ({now.get(key, 'none')}) than when {name} was loaded live on it "
            f"({then.get(key, 'none')}); NET={live.network} takes it as it is now"
        )
    return known[live.network]


def replayed_version(live: LiveLoads) -> str:
    """The version of HTTP that most requests of the `live` loads used, or its substitute; HTTP/2 if the version is
    unknown."""
    ((version, _),) = live.requests.most_common(1) or [("h2", 0)]
    return REPLAYED_AS.get(version, version)


def sentences(name: str, compared: Compared) -> list[str]:
    """The comparison of the site `name`, in lines for the terminal."""
    live, total = compared.live, compared.live.requests.total()
    used = ", ".join(f"{share(count / total)} of requests over {version}" for version, count in live.requests.items())
    loads = "1 live load" if len(live.loads) == 1 else f"{len(live.loads)} live loads"
    replays = ", ".join(f"over {protocol} on {network}" for network, protocol in compared.conditions)
    return [f"{name}: {loads} ({used or 'over an unknown version of HTTP'}); replayed {replays}"]


def summary(folder: Path) -> list[str]:
    """The errors over all sites of the campaign in `folder`, in lines; also writes them into the folder."""
    confidence = of_campaign(folder, require_document(folder)).confidence
    campaign, live = load(folder), live_of(folder)
    by_site = errors(campaign, live, confidence)
    all_sites = overall(by_site, confidence)
    file = write_errors(folder, by_site, all_sites, confidence)
    give_to_caller(file)
    lines = []
    for row in all_sites.to_dict("records"):
        where = f", {row['condition']}" if row["condition"] else ""
        sites = plural("site", row["sites"])
        lines.append(f"{label(row['metric'])}{where}: the median error of {sites} is {share(row['median_error'])}")
    return [*lines, *machine.sentences(live, campaign.runs), f"measured: {folder}; in numbers: {file}"]


def live_of(folder: Path) -> dict[str, LiveLoads]:
    """The live loads of each site of the campaign in `folder`. Raises EyelevelError."""
    return {name: one.live for name, one in compared_sites(require_document(folder)).items()}
