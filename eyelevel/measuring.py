"""The common parts of the commands that measure: options, the campaign's folder, and how they begin and end."""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import click
from rich.console import Console

from base.denial import denial
from base.errors import EyelevelError
from base.files import require_writable
from base.ownership import give_to_caller
from base.privileges import require_browsing, require_namespaces
from base.terminal import print_line
from browsers.registry import browser_named
from dataset.plan import Enough, never_enough
from dataset.table import DOCUMENT
from eyelevel.consent import require_consent
from eyelevel.lanes import lanes_of_campaign, measured_lanes
from eyelevel.measuring_options import MeasuringOptions, continuation
from measure.campaign.budget import Budget
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.lanes import InLanes
from measure.campaign.place import Here, Place
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import require_same_versions
from measure.host.exclusive import measuring_alone
from measure.host.timekeeping import priority_warning, timekeeping
from measure.run.aliases import distinct
from measure.run.browser import refusal
from measure.validate.network.server_rtts import DelayedSite
from measure.validate.record import validate_campaign, validate_worker
from replay.hops.registry import proxy_of, require_served_behind
from replay.shells.registry import require_emulated
from servers.recorded_chains import recorded_chains
from servers.registry import http1_refusal
from tuning.defaults import DEFAULT_SHELLS, OFF, RECORDED
from tuning.devices import device_of
from tuning.networks import Network

# The faults of the results' disk, by the number of the error, and what to do.
DISK_FAULTS = {
    errno.ENOSPC: "is full; free some of it",
    errno.EDQUOT: "is full for this user (quota); free some of it",
    errno.EROFS: "is read-only, as the kernel makes it after errors (dmesg tells them); make it writable",
    errno.EIO: "has errors (dmesg tells them); repair it",
    errno.ESTALE: "is not what it was at the server (NFS); mount it again",
}

# The time that validation takes on two cores (s): of a network, and of a protocol beside others.
NETWORK_S, PROTOCOL_S = 15.0, 50.0


def validation_s(networks: int, protocols: int) -> float:
    """How long it takes to validate so many networks and protocols (s)."""
    return NETWORK_S * networks + PROTOCOL_S * protocols


def no_announcement(campaign: Campaign) -> Iterable[str]:
    """Nothing is printed before `campaign`."""
    return ()


def carry_out(
    campaign: Campaign,
    options: MeasuringOptions,
    console: Console,
    command: str,
    enough: Enough = never_enough,
    announcement: Callable[[Campaign], Iterable[str]] = no_announcement,
    unnamed: Sequence[str] = (),
    budget_s: float | None = None,
    again: str = "",
) -> None:
    """Measure `campaign`, and print how it goes; `command` of `eyelevel` goes on with it, or the command line `again`.

    The lines of the `announcement` are printed before the first run, when the number of lanes is known. `unnamed`: of a
    new campaign, the variables that decide how long it takes and that its user did not give; a long one is asked about
    then, unless `budget_s` says how long all of this may take, validation included. Ends the process when it is
    interrupted. Raises EyelevelError.
    """
    if budget_s is None:
        require_consent(campaign, unnamed, console, agreed=options.agreed, lanes=options.lane_count)
    # The head of a cluster, too, says with what its networks keep time, since all machines must do so alike.
    (require_namespaces if options.dask else require_browsing)("measuring")
    require_browser(campaign)
    require_one_protocol(campaign)
    require_networks(campaign)
    require_shells(campaign, options)
    require_recorded(campaign)
    # Before minutes of validation, which would be in vain.
    require_writable(campaign.folder, "--results names another folder")
    if (campaign.folder / DOCUMENT).exists():
        require_same_versions(campaign.folder, campaign.versions())
    # A cluster's workers keep their own machines; this one only collects what they have measured.
    place = nullcontext() if options.dask else measuring_alone("measuring")
    again = again or continuation(command, campaign.folder)
    with place, interruptible(campaign.folder, again):
        budget = None if budget_s is None else Budget.of(budget_s)
        needs_priority = not options.dask and campaign.loading.shells == DEFAULT_SHELLS
        if needs_priority and (warning := priority_warning(timekeeping())):
            print_line(console, f"note: {warning}")
        if options.validate and not options.dask:
            planned = dict.fromkeys(run.network for block in campaign.plan() for run in block)
            networks = distinct_networks(campaign.networks[name] for name in planned)
            chosen = distinct(campaign.protocols.values())
            delayed = delayed_sites(campaign)
            if checks := validate_campaign(campaign.folder, networks, chosen, campaign.loading.shells, delayed):
                console.print(f"networks and protocols are as configured: all {len(checks)} checks passed")
        calibrate = partial(measured_lanes, console, campaign.loading.browser)
        lanes = lanes_of_campaign(campaign.folder, options.lanes, options.dask, console, calibrate)
        campaign = replace(campaign, lanes=lanes)
        for line in announcement(campaign):
            print_line(console, line)
        display = partial(ProgressDisplay, console, plain=options.plain, lanes=lanes.count)
        if open_runs := measure(campaign, display, place_of(campaign, options), enough, budget):
            text = f"the budget is used up, and {open_runs} runs are open; to go on: {again}"
            print_line(console, text)


def place_of(campaign: Campaign, options: MeasuringOptions) -> Place:
    """Where `campaign` is measured: on a cluster, in the lanes of this machine, or on the machine as a whole."""
    if options.dask:
        from measure.campaign.cluster import Cluster

        validation = partial(validate_worker, delayed=delayed_sites(campaign))
        return Cluster(options.dask, campaign, None if options.trust_workers else validation)
    return InLanes() if campaign.lanes.count > 1 else Here()


def delayed_sites(campaign: Campaign) -> list[DelayedSite]:
    """The sites of `campaign` of which servers are farther away than its networks say."""
    extra_ms = {name: campaign.loading.server_rtts.extra_ms(site) for name, site in campaign.sites.items()}
    return [DelayedSite(name, campaign.sites[name].folder, extra) for name, extra in extra_ms.items() if extra]


def distinct_networks(networks: Iterable[Network]) -> list[Network]:
    """`networks` without each that has the same settings as an earlier one, under another name."""
    first: list[Network] = []
    for network in networks:
        if all(replace(network, name=other.name) != other for other in first):
            first.append(network)
    return first


def require_browser(campaign: Campaign) -> None:
    """Raises EyelevelError when a browser of the campaign cannot load one of its pages over one of its protocols."""
    proxies = {proxy_of(network) for network in campaign.networks.values()}
    for browser, protocol, site, proxy in product(
        campaign.browsers, campaign.protocols.values(), campaign.sites.values(), proxies
    ):
        if fault := refusal(browser_named(browser), protocol, site, device_of(browser), proxy):
            raise EyelevelError(fault)


def require_one_protocol(campaign: Campaign) -> None:
    """Raises EyelevelError when a study looks into loads of one protocol, and the servers of a load speak two."""
    for protocol in campaign.protocols.values():
        if protocol.alternative_service and not campaign.method.takes_alternatives:
            raise EyelevelError(
                f"the servers of {protocol.name} speak {' and '.join(protocol.http_versions)}, of which only 'make "
                "campaign' can make sense; choose protocols without an alternative"
            )


def require_networks(campaign: Campaign) -> None:
    """Raises EyelevelError when a server cannot serve by one of the campaign's protocols behind one of its networks, or
    a study looks into loads whose packets are in a tunnel."""
    for network in campaign.networks.values():
        if proxy_of(network) and not campaign.method.sees_tunnels:
            raise EyelevelError(
                f"the hop of {network.name} is a proxy of CONNECT-UDP, with which only 'make campaign' and 'make grid' "
                "can measure; choose networks without one"
            )
    for network, protocol in product(campaign.networks.values(), campaign.protocols.values()):
        require_served_behind(network, protocol)


def require_recorded(campaign: Campaign) -> None:
    """Raises EyelevelError when servers are to be as they were recorded, and those of a site were not recorded so."""
    delayed_sites(campaign)
    for protocol in campaign.protocols.values() if campaign.loading.alpn == RECORDED else ():
        if fault := http1_refusal(protocol):
            raise EyelevelError(f"{protocol.name}: {fault} (--alpn recorded, ALPN=recorded)")
    if campaign.loading.certificates == RECORDED:
        for site in campaign.sites.values():
            recorded_chains(site)


def require_shells(campaign: Campaign, options: MeasuringOptions) -> None:
    """Raises EyelevelError when the campaign's shells are not installed, or cannot do what it wants of them."""
    shells = campaign.loading.shells
    if shells != DEFAULT_SHELLS and (options.dask or options.lanes not in (None, "1")):
        option = "--dask" if options.dask else "--lanes"
        raise EyelevelError(f"SHELLS={shells} is for one run at a time on this machine; leave out {option}")
    if not options.dask:
        delayed = campaign.loading.server_rtts.kind != OFF
        require_emulated(shells, campaign.networks.values(), delayed_servers=delayed)


@contextmanager
def interruptible(folder: Path, again: str) -> Iterator[None]:
    """Measure into the campaign's `folder` while the block runs; `again` is the command line that goes on with it.

    Ends the process when it is interrupted. Raises EyelevelError when the disk takes nothing more, when a file may not
    be used as it must be, or when somebody has removed the folder.
    """
    try:
        if not folder.parent.exists():
            folder.parent.mkdir(parents=True)
            give_to_caller(folder.parent)
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what was measured is in {folder}; to go on: {again}", err=True)
        sys.exit(130)
    except FileNotFoundError as error:
        # The name is a number where a descriptor was looked at.
        if not Path(str(error.filename)).is_relative_to(folder) or (folder / DOCUMENT).exists():
            raise
        raise EyelevelError(
            f"{folder} was removed, or moved, while it was being measured into; put it back, then go on: {again}"
        ) from None
    except PermissionError as error:
        if not (fault := denial(error)):
            raise
        is_result = Path(os.fsdecode(error.filename)).is_relative_to(folder.parent)
        remedy = "name another folder" if is_result else f"allow it, then go on: {again}"
        raise EyelevelError(f"{fault}; {remedy}") from None
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise
        fault = DISK_FAULTS[error.errno]
        raise EyelevelError(f"the disk of {folder} {fault}, then go on: {again}; what was measured is safe") from None
