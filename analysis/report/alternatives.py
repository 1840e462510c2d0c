"""Text alternatives of a report's figures: the finding of each, from the table that the figure draws."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.runs import rows_of
from analysis.statistics.outcomes import FASTER, SIGNIFICANT_P, SLOWER, UNTESTED
from analysis.statistics.samples import Array, Samples
from analysis.text import label, listing, mean_count, number, pair_label, percent, plural, program, share, span

# A sentence names at most this many settings; the table has all of them.
MOST = 8


def sites(table: pd.DataFrame) -> str:
    """The text for the figure of the sites' sizes and servers."""
    parts = []
    for how, size, count in (("loaded", "loaded_bytes", "contacted_servers"), ("recorded", "bytes", "servers")):
        if size in table and len(megabytes := table[size].dropna() / 1e6):
            low, middle, high = (number(megabytes.quantile(place)) for place in (0, 0.5, 1))
            parts.append(f"{low} to {high} MB {how} (median {middle} MB)")
        if count in table and len(servers := table[count].dropna()):
            least_most = span(int(servers.min()), int(servers.max()))
            parts[-1] += f", {least_most} servers (median {mean_count(servers.median())})"
    return f"{plural('site', len(table))}: {'; '.join(parts)}."


def distribution(gains: pd.DataFrame, metric: str) -> str:
    """The text for Figure 3: the median changes. `gains` are those against one reference."""
    medians = rows_of(gains, metric=metric).groupby(["network", "compared"], sort=False)["gain"].median()
    texts = [
        f"on {label(str(network))} "
        + listing([f"{label(str(protocol))} {percent(gain)}" for (_, protocol), gain in group.items()])
        for network, group in medians.groupby("network", sort=False)
    ]
    return f"Median change of {label(metric)} over sites: {'; '.join(texts)}."


def site_by_site(gains: pd.DataFrame, metric: str) -> str:
    """The text for the map of one pair: how many sites are faster and slower. `gains` are those of the pair."""
    texts = []
    for network, group in rows_of(gains, metric=metric).groupby("network", sort=False):
        tested = group[group["verdict"] != UNTESTED]
        faster, slower = ((tested["verdict"] == verdict).sum() for verdict in (FASTER, SLOWER))
        texts.append(f"on {label(str(network))} {faster} faster and {slower} slower of {len(tested)}")
    return f"Sites that differ in {label(metric)} at p < {SIGNIFICANT_P}: {'; '.join(texts)}."


def beside_the_paper(table: pd.DataFrame) -> str:
    """The text for the figure of the paper's numbers and the campaign's."""
    signs = table["same_sign"]
    return f"{(signs == 'yes').sum()} of {(signs != '').sum()} numbers have the sign that they have in the paper."


def family(table: pd.DataFrame) -> str:
    """The text for the declared hypotheses in one metric."""
    texts = [
        f"{label(row['network'])}, {pair_label(row['compared'], row['reference'])}: {row['verdict']}"
        + (f", {percent(row['gain'])}" if np.isfinite(row["gain"]) else "")
        for row in table.to_dict("records")
    ]
    return f"{'; '.join(texts)}."


def programs(differences: pd.DataFrame) -> str:
    """The text for a contrast with several programs: the change with each."""
    texts = [
        f"{label(row['network'])}, {program(row['servers'], row['browser'])}: {row['verdict']}"
        + (f", {percent(row['difference'])}" if np.isfinite(row["difference"]) else "")
        for row in differences.to_dict("records")
    ]
    return f"Change of the ratio with another program: {'; '.join(texts)}."


def over_sites(table: pd.DataFrame, metric: str) -> str:
    """The text for the mean changes with their intervals."""
    rows = rows_of(table, metric=metric)
    beyond = rows[(rows["gain_low"] > 0) | (rows["gain_high"] < 0)].to_dict("records")
    texts = [
        f"{pair_label(row['compared'], row['reference'])} on {label(row['network'])} {percent(row['gain'])}"
        for row in beyond[:MOST]
    ]
    text = f"In {label(metric)}, {len(beyond)} of {len(rows)} intervals leave 0 out"
    return f"{text}: {'; '.join(texts)}{', and more' if len(beyond) > MOST else ''}." if texts else f"{text}."


def runs_needed(table: pd.DataFrame, column: str, difference: str) -> str:
    """The text for the runs that a difference needs: the range of its `column`."""
    runs = table[column].dropna()
    if runs.empty:
        return "The scatter is not known."
    least, most = (f"{value:.0f}" if np.isfinite(value) else "over a million" for value in (runs.min(), runs.max()))
    return f"A difference of {difference} needs {span(least, most)} runs."


def strip(shots: Mapping[str, Mapping[str, float]]) -> str:
    """The text for film strips. `shots`: protocol → the metrics of its run."""
    texts = [
        f"{label(protocol)}: " + listing([f"{label(metric)} {value:.0f} ms" for metric, value in metrics.items()])
        for protocol, metrics in shots.items()
    ]
    return f"{'; '.join(texts)}."


def order(residuals: pd.DataFrame, metric: str) -> str:
    """The text for the runs in their order: the medians of the first and the last tenth."""
    distances = residuals[f"off_{metric}"].dropna().to_numpy()
    if not len(distances):
        return f"No run has {label(metric)}."
    tenth = max(1, len(distances) // 10)
    first, last = np.median(distances[:tenth]), np.median(distances[-tenth:])
    return (
        f"In {label(metric)}, the first tenth of the runs lies {percent(first)} from the medians of their settings, "
        f"and the last tenth {percent(last)}."
    )


def calibration(p_values: pd.DataFrame) -> str:
    """The text for the p values of equal samples."""
    share_below = float((p_values["anova_p"] < SIGNIFICANT_P).mean())
    return f"{share(share_below)} of {plural('test', len(p_values))} of equal samples have p < {SIGNIFICANT_P}."


def exclusions(gates: pd.DataFrame, attempts: pd.Series) -> str:
    """The text for the excluded attempts: the largest share. `attempts` is by network and protocol."""
    shares = gates.groupby(["network", "protocol"])["excluded"].sum().div(attempts).dropna()
    if shares.empty:
        return "No attempt is excluded."
    network, protocol = shares.idxmax()
    median = float(shares.reindex(attempts.index, fill_value=0).median())
    return (
        f"The largest share is that of {label(protocol)} on {label(network)}, {share(float(shares.max()))}; the "
        f"median of all protocols and networks is {share(median)}."
    )


def within(samples: Samples, network: str, metric: str, protocols: Sequence[str]) -> str:
    """The text for every run on one network: each protocol's median as a multiple of the first's, median over sites."""
    of_first, *others = (
        np.array([_median(runs) for runs in samples.of(protocol)[place]])
        for place in [(samples.networks.index(network), slice(None), samples.metrics.index(metric))]
        for protocol in protocols
    )
    texts = [
        f"{label(protocol)} {_median(medians / of_first):.2f}"
        for protocol, medians in zip(protocols[1:], others, strict=True)
    ]
    compared = listing(texts) if texts else "no other protocol"
    return f"Median over sites, in {label(metric)}, as a multiple of {label(protocols[0])}'s: {compared}."


def _median(values: Array) -> float:
    """The median of the finite `values`; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")
