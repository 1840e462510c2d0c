"""Variants of sites against their originals, as protocols are compared: ratios of runs over the same protocol.

Blocks of a variant and its original follow each other in the plan (`measure.campaign.plan`), in random order. The
ratios are of the runs of one round, so they cancel what changes from round to round, but not from block to block.
"""

import numpy as np
import pandas as pd

from analysis.contrasts import false_discovery_rate
from analysis.hypotheses import Hypotheses
from analysis.outcomes import verdicts
from analysis.ratios import mean_over_sites
from analysis.samples import Samples, counts
from record.names import original_of

COLUMNS = ["variant", "original", "network", "protocol", "metric", "rounds", "change", "low", "high", "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "verdict"]


def variants(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """A row for each variant, network, protocol and metric that a round has both of.

    Columns: variant, original, network, protocol, metric, rounds, change (of the variant's time, as a share) with low
    and high, p and equivalence_p (of `hypotheses.equivalence_margin`) with their corrections by Benjamini and
    Hochberg's false discovery rate over the table, verdict.
    """
    pairs = [(name, original_of(name)) for name in samples.sites if original_of(name) in samples.sites]
    rows = []
    for variant, original in ((name, first) for name, first in pairs if name != first):
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (np.log(samples.values[:, samples.sites.index(name)]) for name in (variant, original))
            ratios = one - other
        ratios = np.where(np.isfinite(ratios), ratios, np.nan)
        change = mean_over_sites(ratios[..., None, :])
        low, high = change.interval(hypotheses.confidence)
        p = change.difference_p(), change.equivalence_p(float(np.log1p(hypotheses.equivalence_margin)))
        rounds = counts(ratios)
        for place in zip(*np.nonzero(rounds), strict=True):
            axes = zip((samples.networks, samples.protocols, samples.metrics), place, strict=True)
            numbers = [float(np.expm1(part[place])) for part in (change.centre, low, high)]
            names = [axis[number] for axis, number in axes]
            rows.append([variant, original, *names, int(rounds[place]), *numbers, *(float(part[place]) for part in p)])
    table = pd.DataFrame(rows, columns=[name for name in COLUMNS if not name.endswith(("_corrected", "verdict"))])
    for name in ("p", "equivalence_p"):
        table[f"{name}_corrected"] = false_discovery_rate(table[name].to_numpy(dtype=float))
    table["verdict"] = verdicts(table["change"], table, hypotheses.significant_p)
    return table[COLUMNS]
