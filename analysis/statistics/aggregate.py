"""Statistics over all sites: the mean gain by a two-level bootstrap, and a mixed model of the ratio within blocks.

Both treat the sites as a sample of all sites like them. So their intervals hold beyond the measured sites, and are wide
if these are few.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM

from analysis.statistics.contrast_table import contrast_columns
from analysis.statistics.contrasts import RESAMPLES, SEED, resample_weights
from analysis.statistics.gain import gain, mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import LEAST_SITES
from analysis.statistics.ratios import block_ratios, of_numbers
from analysis.statistics.samples import OVER_SITES, Array, Samples, by_count

# A variance between sites below this share of the variance between runs counts as 0.
BOUNDARY = 1e-3
MIXED = ("mixed_gain", "mixed_low", "mixed_high")


def over_sites(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """One row for each pair, network and metric that both protocols have on some site.

    Columns: reference, compared, network, metric, sites; gain and delta_ms (means over the sites) with _low and _high
    from the two-level bootstrap; NaN with fewer than two sites.
    """
    rows = []
    for pair in hypotheses.comparisons:
        reference, compared = samples.of_pair(pair)
        cell_changes = np.stack([gain(reference, compared), mean(compared) - mean(reference)], axis=-1)
        pools = resampled_changes(reference, compared, pair)
        for n, network in enumerate(samples.networks):
            for m, metric in enumerate(samples.metrics):
                has_both = np.isfinite(cell_changes[n, :, m]).all(axis=-1)
                if not has_both.any():
                    continue
                site_changes, resamples = cell_changes[n, has_both, m], pools[n, has_both, m]
                row = [*pair, network, metric, len(site_changes)]
                for i, centre in enumerate(site_changes.mean(axis=0)):
                    row += [centre, *two_level_interval(site_changes[:, i], resamples[:, i], hypotheses.confidence)]
                rows.append(row)
    columns = [*OVER_SITES, "sites"]
    columns += [f"{name}{end}" for name in ("gain", "delta_ms") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=columns)


def resampled_changes(reference: Array, compared: Array, pair: Pair) -> Array:
    """The gain and the difference in ms of RESAMPLES resamples of each cell's runs: cells x 2 x RESAMPLES."""

    def change(x: Array, y: Array) -> Array:
        before = x @ resample_weights(x.shape[1], pair.reference)
        after = y @ resample_weights(y.shape[1], pair.compared)
        return np.stack([after / before - 1, after - before], axis=1)

    return by_count(change, reference, compared, least=1, outputs=(2, RESAMPLES))


def two_level_interval(values: Array, pool: Array, confidence: float) -> tuple[float, float]:
    """The interval of the mean of `values`, one per site, from resamples of each site's runs (`pool`: sites x
    resamples).

    A replicate draws sites with replacement, and for each drawn site one resample of its runs. The replicates are
    studentised by their own spread between sites, so that the runs' noise is not counted twice (Davison and Hinkley,
    Bootstrap Methods, section 3.8).
    """
    sites = len(values)
    if sites < LEAST_SITES:
        return float("nan"), float("nan")
    drawn_sites, resample = _draws(sites)
    replicates = pool[drawn_sites, resample]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = replicates.std(axis=1, ddof=1)
        pivots = (replicates.mean(axis=1) - values.mean()) / errors
    pivots = np.where(np.isnan(pivots), 0, pivots)
    tail = (1 - confidence) / 2
    low, high = np.quantile(pivots, [1 - tail, tail], method="nearest")
    spread = values.std(ddof=1)
    return float(values.mean() - low * spread), float(values.mean() - high * spread)


@cache
def _draws(sites: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    draw = np.random.default_rng([SEED, sites])
    size = (RESAMPLES, sites)
    return draw.integers(sites, size=size), draw.integers(RESAMPLES, size=size)


def mixed_models(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """The mixed model of every pair, network and metric. The columns are reference, compared, network, metric and the
    results of `mixed_model`."""
    rows = []
    for pair in hypotheses.comparisons:
        ratios = block_ratios(samples, pair)
        for n, network in enumerate(samples.networks):
            for m, metric in enumerate(samples.metrics):
                model = mixed_model(ratios[n, :, m], hypotheses.confidence)
                rows.append({**pair._asdict(), "network": network, "metric": metric, **model})
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=OVER_SITES)


def mixed_model(ratios: Array, confidence: float) -> dict[str, float | str]:
    """Fit ln(compared / reference), taken within blocks (`ratios`: sites x blocks; NaN: not both measured).

    The full model of a time is ln t = protocol + site + site:protocol + machine + block + noise, all random except the
    protocol. Both runs of a block share its site, machine and moment, so the ratio within the block keeps only protocol
    + site:protocol + noise, with the same estimate and error for whole blocks. The model that is fitted (REML)
    therefore has only a random intercept for each site. The interval has sites - 1 degrees of freedom.
    Returns mixed_gain, mixed_low, mixed_high (as gains), mixed_p, site_sd and run_sd (standard deviations of the log
    ratio between sites and between blocks), blocks, mixed_note.
    """
    is_complete = np.isfinite(ratios)
    site, _ = np.nonzero(is_complete)
    values = ratios[is_complete]
    result: dict[str, float | str] = dict.fromkeys((*MIXED, "mixed_p", "site_sd", "run_sd"), float("nan"))
    result |= {"blocks": len(values), "mixed_note": ""}
    sites = len(np.unique(site))
    if sites < LEAST_SITES or len(values) <= sites or np.ptp(values) == 0:
        few_sites = sites < LEAST_SITES
        return result | {"mixed_note": "fewer than two sites" if few_sites else "one block a site, or no variance"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variance between sites of 0 lies on the boundary, which is no fault
        try:
            model = MixedLM(values, np.ones((len(values), 1)), groups=site).fit(reml=True, method=["bfgs", "powell"])
        except (np.linalg.LinAlgError, ValueError) as failure:
            return result | {"mixed_note": f"no fit: {failure}"}
    centre, error = float(model.fe_params[0]), float(model.bse_fe[0])
    site_variance, run_variance = float(model.cov_re[0, 0]), float(model.scale)
    if not model.converged and site_variance < BOUNDARY * run_variance:
        # The search stopped at the boundary, where the model is a mean of independent ratios.
        means_model = OLS(values, np.ones(len(values))).fit()
        centre, error = float(means_model.params[0]), float(means_model.bse[0])
        site_variance, run_variance = 0.0, float(means_model.scale)
    elif not (model.converged and np.isfinite(error) and error > 0):
        return result | {"mixed_note": "did not converge"}
    columns = contrast_columns(of_numbers(centre, error, sites), confidence, MIXED)
    return result | {
        **{name: float(columns[name]) for name in MIXED},
        "mixed_p": float(columns["p"]),
        "site_sd": float(np.sqrt(site_variance)),
        "run_sd": float(np.sqrt(run_variance)),
    }
