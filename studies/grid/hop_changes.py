"""The effect of a hop in the middle of the path, protocol by protocol: each network with a hop compared with the same
network without it.

Loads on two networks lie in different rounds, so nothing is paired: the state of the machine does not cancel. Both
networks are measured in turn, in a random order, so the machine favours neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.runs import CampaignTable, gates
from analysis.samples import samples_of
from analysis.statistics.contrast_table import contrast_columns, false_discovery_rate, judged
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import independent_difference, mean_over_sites, site_margins
from analysis.statistics.samples import Samples, counts, logarithms
from measure.run.gates import OVER_TIME
from tuning.hops import NONE

# Two networks count as equal except for their hop if they differ only in OF_NETWORK, and their hops only in OF_HOP.
OF_NETWORK = ("name", "source", "hop")
OF_HOP = ("kind", "congestion_control", "initial_window_packets")

COLUMNS = ["protocol", "site", "network", "control", "loads_without", "loads_with", "mean_without", "mean_with"]
CHANGE = ("change", "change_low", "change_high")
COLUMNS += [*CHANGE, "p_corrected", "margin", "verdict"]


@dataclass(frozen=True)
class HopPair:
    """Two networks by their names: the hop of `network` does something; the hop of `control` only forwards packets."""

    network: str
    control: str


def hop_pairs(campaign: CampaignTable) -> list[HopPair]:
    """The pairs of networks of `campaign` that differ only in their hop, in the same browser."""
    networks = campaign.network_settings
    without_hops = {
        name: (campaign.clients[name].program, _without_hop(settings))
        for name, settings in networks.items()
        if settings.get("hop")
    }
    controls = {same: name for name, same in without_hops.items() if networks[name]["hop"]["kind"] == NONE}
    return [
        HopPair(name, controls[same])
        for name, same in without_hops.items()
        if networks[name]["hop"]["kind"] != NONE and same in controls
    ]


def _without_hop(settings: Mapping[str, Any]) -> str:
    path = {key: value for key, value in settings.items() if key not in OF_NETWORK}
    beyond = {key: value for key, value in settings["hop"].items() if key not in OF_HOP}
    return repr((sorted(path.items()), sorted(beyond.items())))


def hop_changes(campaign: CampaignTable, metric: str, hypotheses: Hypotheses) -> pd.DataFrame:
    """A row with COLUMNS for each page, protocol and pair of networks (`hop_pairs`) with loads on both.

    `change`: how much longer `metric` takes with the hop than without, as a share; negative is faster. It is
    computed from the locations of the logarithms on each of the two networks, and has the interval from `change_low` to
    `change_high`. `p_corrected` is corrected for the false discovery rate over all rows (Benjamini and Hochberg).
    `margin`: the change within which the two networks count as equivalent. Times are in ms. There is no row
    if a load did not end in time, since the other loads are not representative.
    """
    samples = samples_of(campaign, [metric])
    pairs = [pair for pair in hop_pairs(campaign) if _is_measured(pair, samples)]
    tables = [_changes_of(samples, pair, campaign.rtt_ms, hypotheses) for pair in pairs]
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(tables, ignore_index=True)
    late = _late_settings(campaign.runs)
    all_in_time = [
        not late & {(row.site, row.network, row.protocol), (row.site, row.control, row.protocol)}
        for row in table.itertuples()
    ]
    table = table[all_in_time].reset_index(drop=True)
    return judged(table, false_discovery_rate, hypotheses.significant_p, CHANGE[0])[COLUMNS]


def _late_settings(runs: pd.DataFrame) -> set[tuple[str, str, str]]:
    """Site, network and protocol of all loads that did not end in time."""
    late = runs[gates(runs["reason"]) == OVER_TIME.name]
    return set(late[["site", "network", "protocol"]].itertuples(index=False, name=None))


def _is_measured(pair: HopPair, samples: Samples) -> bool:
    return pair.network in samples.networks and pair.control in samples.networks


def _changes_of(samples: Samples, pair: HopPair, rtt_ms: Mapping[str, float], hypotheses: Hypotheses) -> pd.DataFrame:
    """The rows of `hop_changes` for one pair of networks, with tests before any correction."""
    without, with_hop = samples.on([pair.control]), samples.on([pair.network])
    tables = []
    for protocol in samples.protocols:
        times = [part.of(protocol) for part in (without, with_hop)]
        # Each page is analysed alone, so the axis of sites has length 1.
        change = independent_difference(*(mean_over_sites(logarithms(part)[..., None, :]) for part in times))
        margin = site_margins(without, Pair(protocol, protocol), hypotheses, rtt_ms)
        loads = [counts(part) for part in times]
        columns: dict[str, Any] = {
            "protocol": protocol,
            "control": pair.control,
            "loads_without": loads[0],
            "loads_with": loads[1],
            "mean_without": mean(times[0]),
            "mean_with": mean(times[1]),
            **contrast_columns(change, hypotheses.confidence, CHANGE, margin),
        }
        # The network in the column `network` of each row is the one with the hop.
        table = replace(without, networks=(pair.network,)).frame(columns)
        tables.append(table[(table["loads_without"] > 0) & (table["loads_with"] > 0)])
    return pd.concat(tables, ignore_index=True)
