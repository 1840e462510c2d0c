"""The mean gain over sites like those of the campaign.

The sites are treated as a sample of all sites like them. So the intervals hold beyond the measured sites, and are wide
if these are few.
"""

import numpy as np
import pandas as pd

from analysis.statistics.contrasts import RATIO
from analysis.statistics.gain import gain, mean
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.intervals import over_runs
from analysis.statistics.ratios import block_ratios, locations
from analysis.statistics.samples import OVER_SITES, Samples


def over_sites(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """One row for each pair, network and metric that both protocols have on some site.

    Columns: reference, compared, network, metric, sites; gain and delta_ms (the paper's, means over the sites) and
    ratio_gain (of the mean over sites of the locations of log ratios within blocks), each with the ends of Student's
    interval over sites: _low and _high (ratio_low, ratio_high), NaN with fewer than two sites.
    """
    names = ("gain", "delta_ms")
    columns = [*OVER_SITES, "sites", *(f"{name}{end}" for name in names for end in ("", "_low", "_high")), *RATIO]
    rows = []
    for pair in hypotheses.comparisons:
        reference, compared = samples.of_pair(pair)
        ratios, _ = locations(block_ratios(samples, pair))
        changes = np.stack([gain(reference, compared), mean(compared) - mean(reference), ratios], axis=-1)
        for n, network in enumerate(samples.networks):
            for m, metric in enumerate(samples.metrics):
                of_sites = changes[n, :, m]
                sites = int(np.isfinite(of_sites[:, :2]).all(axis=-1).sum())
                if not sites:
                    continue
                means = [over_runs(values[np.isfinite(values)], hypotheses.confidence) for values in of_sites.T]
                numbers = [[one.mean, one.low, one.high] for one in means]
                rows.append([*pair, network, metric, sites, *numbers[0], *numbers[1], *np.expm1(numbers[2])])
    return pd.DataFrame(rows, columns=columns)
