"""The campaign of a study that takes sites, networks and protocols from its command line."""

from collections.abc import Callable, Collection

from base.structure import structured
from measure.campaign.campaign import Campaign, Selection
from measure.campaign.method import Method
from measure.run.aliases import choose_protocols
from measure.run.setting import Loading
from record.collection import choose_sites
from studies.study import REPEATS, RUNS, Request
from tuning import networks, protocols
from tuning.networks import Network
from tuning.settings import choose


def networks_before(request: Request) -> list[Network]:
    """The networks of the existing campaign of `request`, as they were when it began. Raises EyelevelError."""
    measured = request.document.settings.networks if request.document else {}
    return [structured(values, Network, f"the network {name}") for name, values in measured.items()]


def study_campaign(
    request: Request,
    study: str,
    method: Method,
    *,
    runs: int = RUNS,
    repeats: int = REPEATS,
    change: Callable[[Network], Collection[Network]] = lambda network: (network,),
) -> Campaign:
    """The campaign, without films, of the sites, networks and protocols that `request` names. Raises EyelevelError.

    `runs`: the number of runs of each, unless `request` gives one; `change`: takes each named network and returns the
    networks to measure in its place.
    """
    sites = choose_sites(request.names("sites", "sites"))
    over = choose_protocols(request.names("proto", "protocols"), protocols.load())
    before = networks_before(request)
    if request.net is None and before:
        chosen = before
    else:
        unchanged = choose("network", request.names("net", "networks"), networks.load())
        chosen = [changed for network in unchanged for changed in change(network)]
    selection = Selection(
        tuple(site.name for site in sites),
        tuple(network.name for network in chosen),
        tuple(protocol.name for protocol in over),
    )
    # Sites and protocols that were measured before stay in the campaign, but no new runs of them are planned.
    if request.document:
        sites = [*choose_sites(list(request.document.settings.sites)), *sites]
        over = [*choose_protocols(list(request.document.settings.protocols), protocols.load()), *over]
    return Campaign(
        folder=request.folder,
        sites={site.name: site for site in sites},
        networks={network.name: network for network in [*before, *chosen]},
        protocols={protocol.name: protocol for protocol in over},
        runs=request.number_of_runs(runs),
        seed=request.plan_seed,
        loading=Loading(filmed=False, browser=request.browser_name),
        method=method,
        repeats=request.setting("repeats", repeats),
        selection=selection,
        study={"name": study},
    )
