"""The estimate of a campaign: its open runs, and the time and the disk space that they and validation take."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from base.errors import EyelevelError
from base.words import in_bytes, in_words, plural
from dataset.plan import Enough, never_enough
from dataset.table import DOCUMENT, RUNS, read_given_up, read_rows
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import Forecast
from measure.campaign.status import status
from measure.campaign.store import FolderStore
from measure.run.aliases import distinct
from measure.validate.network.server_rtts import DelayedSite
from measure.validate.record import Pending, pending
from tuning.networks import Network

# The time that validation takes on two cores (s): for a network, and for a protocol that is validated with others.
NETWORK_S, PROTOCOL_S = 15.0, 50.0


@dataclass(frozen=True)
class Estimate:
    """The open `runs` of a campaign, or their maximum if it `may_end_early`, and the `forecast` for all of them.
    `first_s`: how long the first block with open runs takes."""

    runs: int
    forecast: Forecast
    may_end_early: bool = False
    first_s: float = 0.0

    def __str__(self) -> str:
        at_most = "at most " if self.may_end_early else ""
        size = f"about {in_words(self.forecast.seconds)} and {in_bytes(self.forecast.bytes)}"
        return f"{at_most}{plural('run', self.runs)}: {size}"


def estimate(campaign: Campaign, enough: Enough = never_enough) -> Estimate:
    """The estimate for `campaign`, in its lanes, without cells that have `enough` runs. Raises EyelevelError."""
    rows = read_rows(campaign.folder) if (campaign.folder / RUNS).is_file() else []
    store, plan = FolderStore(campaign.folder, rows), campaign.plan()
    ended = {(one.site, one.network) for one in read_given_up(campaign.folder)}
    ended |= set(enough(campaign.folder)) if rows else set()
    elsewhere = store.made_elsewhere(plan)
    blocks = [
        [
            run
            for run in block
            if store.is_open(run, campaign.repeats) and run.cell not in ended and run not in elsewhere
        ]
        for block in plan
    ]
    runs, forecaster = [run for block in blocks for run in block], campaign.forecaster(rows)
    first = replace(forecaster, runs_at_once=None).forecast(next(filter(None, blocks), []))
    return Estimate(len(runs), forecaster.forecast(runs), campaign.auto, first.seconds)


def runs_within(seconds: float, campaign: Campaign) -> tuple[int, float]:
    """How many runs of each setting are expected to end within `seconds`, at most those of `campaign`, and how long one
    of each takes (s). Raises EyelevelError."""
    each_s = estimate(replace(campaign, runs=1)).forecast.seconds
    return min(campaign.runs, int(max(0.0, seconds) // each_s)), each_s


def left_s(pid: int) -> float | None:
    """How long the campaign that the process `pid` measures will take if it makes all open runs (s), which `RUNS=auto`
    and a budget may not; None if unknown."""
    with suppress(OSError, EyelevelError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                folder = descriptor.readlink()  # a process keeps the folder of its campaign open, to lock it
                if (folder / DOCUMENT).is_file() and (expected := status(folder).expected):
                    return expected.seconds
    return None


def validation_s(networks: int, protocols: int) -> float:
    """How long the validation of so many networks and protocols takes (s)."""
    return NETWORK_S * networks + PROTOCOL_S * protocols


def pending_validation(campaign: Campaign) -> Pending:
    """The settings of `campaign` that have not passed validation yet on this machine. Raises EyelevelError."""
    planned = dict.fromkeys(run.network for block in campaign.plan() for run in block)
    networks = distinct_networks(campaign.networks[name] for name in planned)
    protocols = distinct(campaign.protocols.values())
    return pending(campaign.folder, networks, protocols, campaign.loading.shells, delayed_sites(campaign))


def delayed_sites(campaign: Campaign) -> list[DelayedSite]:
    """The sites of `campaign` with servers that are farther away than its networks say."""
    extra_ms = {name: campaign.loading.server_rtts.extra_ms(site) for name, site in campaign.sites.items()}
    return [DelayedSite(name, campaign.sites[name].folder, extra) for name, extra in extra_ms.items() if extra]


def distinct_networks(networks: Iterable[Network]) -> list[Network]:
    """`networks` without duplicates: a network is left out if an earlier one has the same settings under another
    name."""
    first: list[Network] = []
    for network in networks:
        if all(replace(network, name=other.name) != other for other in first):
            first.append(network)
    return first
