"""Requirements of a campaign. If one is not met, the campaign is refused in one line before anything is measured."""

from itertools import product
from pathlib import Path

from base.errors import EyelevelError
from base.files import require_writable
from base.places import tool
from base.privileges import require_browsing, require_namespaces
from browsers.registry import browser_named
from dataset.table import DOCUMENT
from eyelevel.measuring_options import MeasuringOptions
from measure.campaign.campaign import Campaign
from measure.campaign.results import require_resumable
from measure.run.browser import refusal
from replay.hops.registry import proxy_of, require_served_on
from replay.shells.registry import require_emulated
from replay.trial import require_replayed
from servers.recorded_chains import recorded_chains
from servers.registry import http1_refusal
from tuning.defaults import OFF, RECORDED
from tuning.devices import device_of
from tuning.kernel import require_congestion_controls


def require_measurable(campaign: Campaign, options: MeasuringOptions) -> None:
    """Raise EyelevelError when `campaign` cannot be measured with `options`."""
    # The head of a cluster also needs namespaces: it records the timekeeping of its networks, which must be the same on
    # all machines.
    (require_namespaces if options.dask else require_browsing)("measuring")
    require_browser(campaign)
    require_one_protocol(campaign)
    require_networks(campaign)
    # Workers of a cluster use their own shells and kernels.
    if not options.dask:
        require_shells(campaign)
        require_installed(campaign)
        require_congestion_controls([*campaign.protocols.values(), *campaign.flow_protocols()])
    require_recorded(campaign)
    require_writable(campaign.folder, "--results names another folder")
    if (campaign.folder / DOCUMENT).exists():
        require_resumable(campaign.folder, campaign.document(), campaign.hypotheses)


def require_browser(campaign: Campaign) -> None:
    """Raise EyelevelError when a browser of the campaign cannot load one of its pages over one of its protocols."""
    proxies = {proxy_of(network) for network in campaign.networks.values()}
    for browser, protocol, site, proxy in product(
        campaign.browsers, campaign.protocols.values(), campaign.sites.values(), proxies
    ):
        if fault := refusal(browser_named(browser), protocol, site, device_of(browser), proxy):
            raise EyelevelError(fault)


def require_one_protocol(campaign: Campaign) -> None:
    """Raise EyelevelError when a study needs loads of a single protocol, but the servers of a load speak two."""
    for protocol in campaign.protocols.values():
        if protocol.alternative_service and not campaign.method.takes_alternatives:
            raise EyelevelError(
                f"the servers of {protocol.name} speak {' and '.join(protocol.http_versions)}, which only 'make "
                "campaign' supports; choose protocols without an alternative"
            )


def require_networks(campaign: Campaign) -> None:
    """Raise EyelevelError when a server does not support a protocol on one of the campaign's networks, or when a study
    inspects packets that a network puts into a tunnel."""
    for network in campaign.networks.values():
        if proxy_of(network) and not campaign.method.sees_tunnels:
            raise EyelevelError(
                f"the hop of {network.name} is a proxy of CONNECT-UDP, which only 'make campaign' and 'make grid' "
                "support; choose networks without one"
            )
    for network, protocol in product(campaign.networks.values(), campaign.protocols.values()):
        require_served_on(network, protocol)


def require_recorded(campaign: Campaign) -> None:
    """Raise EyelevelError when servers are to be as far away as recorded, but the recording of a site lacks their
    distances."""
    for site in campaign.sites.values():
        campaign.loading.server_rtts.extra_ms(site)
    for protocol in campaign.protocols.values() if campaign.loading.alpn == RECORDED else ():
        if fault := http1_refusal(protocol):
            raise EyelevelError(f"{protocol.name}: {fault} (--alpn recorded, ALPN=recorded)")
    if campaign.loading.certificates == RECORDED:
        for site in campaign.sites.values():
            recorded_chains(site)


def require_programs(campaign: Campaign) -> None:
    """Raise EyelevelError when a program of the user's does not serve a site of the campaign (`servers.program`): it is
    started once, so that no load fails for its sake."""
    site = next(iter(campaign.sites.values()))
    for protocol in campaign.protocols.values():
        if any(one.program for one in protocol.services):
            try:
                require_replayed(site, protocol, recorded_alpn=campaign.loading.alpn == RECORDED)
            except EyelevelError as error:
                raise EyelevelError(f"{protocol.name}: {error}") from None


def require_installed(campaign: Campaign) -> None:
    """Raise EyelevelError, before the wait for another measurement, when a program of the testbed's that takes part in
    loads is not installed."""
    for program in campaign.further_programs():
        if not Path(program).is_absolute():  # the user's
            tool(program)


def require_shells(campaign: Campaign) -> None:
    """Raise EyelevelError when the campaign's shells are not installed, or lack a feature that it needs."""
    delayed = campaign.loading.server_rtts.kind != OFF
    require_emulated(campaign.loading.shells, campaign.networks.values(), delayed_servers=delayed)
