"""Expected values for a planned campaign from earlier campaigns: the scatter of runs and the size of gains on each
network.

Only planning uses these values. No verdict depends on them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from analysis.runs import CampaignTable, load
from analysis.samples import samples_of
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, locations, mean_over_sites
from analysis.statistics.samples import by_metric, counts
from base.errors import EyelevelError
from base.text import printable
from dataset.table import RUNS
from tuning.networks import Network

# How many campaigns are read, the newest first; each takes half a second.
NEWEST = 5
# A site with fewer blocks says too little about the scatter of its runs.
LEAST_BLOCKS = 5
# The values of networks that no earlier campaign measured, all of log ratios. Runs scatter by 5 %, or by 10 % if
# packets are lost at random; the ratio of two runs scatters by the square root of 2 times as much. Mean gains differ by
# 10 % from zero, and the gains of single sites by 5 % from their mean. `eyelevel simulate` assumes the same.
SCATTER = 0.05 * 2**0.5
LOSSY_SCATTER = 0.10 * 2**0.5
GAIN_SD = 0.10
SITE_SD = 0.05


@dataclass(frozen=True)
class Expected:
    """The values expected on a network, all of ln(compared / reference).

    `scatter`: the standard deviation of blocks around their site's mean. `site_sd`: the standard deviation of sites
    around their mean. `gains`: for pairs that were measured on the network, by metric: the mean over sites and its
    standard error; for other pairs the mean is drawn around 0. `source`: the campaign that measured all of these; empty
    for default values.
    """

    scatter: float
    site_sd: float = SITE_SD
    gains: Mapping[tuple[Pair, str], tuple[float, float]] = field(default_factory=dict)
    source: str = ""


def expected_on(
    networks: Mapping[str, Network],
    hypotheses: Hypotheses,
    results: Path,
    itself: Path,
    host: str,
    warn: Callable[[str], None],
) -> dict[str, Expected]:
    """The values expected on each of `networks`, from the newest campaign in `results` that measured the same network
    on the machine `host`. Skips the campaign `itself`. Calls `warn` for each campaign that cannot be read."""
    expected = {name: Expected(LOSSY_SCATTER if network.loss else SCATTER) for name, network in networks.items()}
    tables = [table for table in results.glob(f"*/{RUNS}") if table.parent != itself]
    for table in sorted(tables, key=lambda path: path.stat().st_mtime, reverse=True)[:NEWEST]:
        unknown = {name: network for name, network in networks.items() if not expected[name].source}
        # A campaign is used whole or not at all. It may be damaged, or written by a version with another format, in
        # ways that nobody foresaw. Planning profits from it, but a failure to read it must not prevent a new campaign.
        try:
            expected |= _measured_in(load(table.parent), unknown, hypotheses, host)
        except Exception as error:
            reason = str(error) if isinstance(error, EyelevelError) else f"it cannot be read ({error!r})"
            warn(f"the earlier campaign {printable(table.parent.name)} is left aside: {printable(reason)}")
    return expected


def _measured_in(
    campaign: CampaignTable, networks: Mapping[str, Network], hypotheses: Hypotheses, host: str
) -> dict[str, Expected]:
    """The values that `campaign` has measured on those of `networks` that it has with the same settings. Empty if it
    was measured on another machine than `host`."""
    if campaign.document.machine.get("host") != host:
        return {}
    kept = {name: json.dumps(setting, sort_keys=True) for name, setting in campaign.settings.networks.items()}
    same = [name for name, network in networks.items() if kept.get(name) == json.dumps(asdict(network), sort_keys=True)]
    measured = {name: _measured_on(name, campaign, hypotheses) for name in same}
    return {name: known for name, known in measured.items() if known}


def _measured_on(network: str, campaign: CampaignTable, hypotheses: Hypotheses) -> Expected | None:
    """The values that `campaign` measured on `network`; None if it has too few runs. Raises EyelevelError."""
    samples = samples_of(campaign)
    metrics = [metric for metric in hypotheses.family_metrics if metric in samples.metrics]
    if network not in samples.networks or not metrics:
        return None
    places, samples = [samples.metrics.index(metric) for metric in metrics], samples.on([network])
    declared = samples.measured(hypotheses.family)
    others = [Pair(samples.protocols[0], name) for name in samples.protocols[1:]]
    gains: dict[tuple[Pair, str], tuple[float, float]] = {}
    scatters, site_variances = list[float](), list[float]()
    for pair in declared or others:
        ratios = by_metric(block_ratios(samples, pair))[0, places]
        centres, variances = locations(ratios)
        sizes = counts(ratios)
        is_known = (sizes >= LEAST_BLOCKS) & np.isfinite(variances)
        if not is_known.any():
            continue
        scatters.append(float((variances * sizes)[is_known].mean()))
        if is_known.sum(axis=-1).min() > 2:
            surplus = centres.var(axis=-1, ddof=1) - np.nanmean(variances, axis=-1)
            site_variances.append(float(np.maximum(0, surplus).mean()))
        if pair in declared:
            ratio = mean_over_sites(ratios)
            means = zip(ratio.centre.tolist(), ratio.error.tolist(), strict=True)
            gains |= {(pair, metric): mean for metric, mean in zip(metrics, means, strict=True)}
    if not scatters:
        return None
    site_sd = float(np.sqrt(np.mean(site_variances))) if site_variances else SITE_SD
    return Expected(float(np.sqrt(np.mean(scatters))), site_sd, gains, campaign.name)
