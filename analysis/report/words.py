"""What a campaign says, in sentences; every number in them comes from its tables."""

import math
from typing import Any

import pandas as pd

from analysis.comparison import PAPER_SITES
from analysis.figures.style import named
from analysis.hypotheses import Pair
from analysis.report.findings import Findings
from analysis.report.views import UNUSUAL, counted, percent
from analysis.runs import METRICS

HEADLINE = "si"


def scope(found: Findings) -> str:
    """What was measured."""
    runs, measured = found.campaign.runs, found.samples
    per_setting = runs[runs["valid"]].groupby(["network", "site", "protocol"]).size()
    least, most = int(per_setting.min()), int(per_setting.max())
    each = f"{least}" if least == most else f"{least} to {most}"
    networks, protocols = ([named(name) for name in names] for names in (measured.networks, measured.protocols))
    return (
        f"{counted('site', len(measured.sites))} behind {_list(networks)} over {_list(protocols)}: "
        f"{len(runs)} attempts, of which {int(runs['valid'].sum())} count, {each} valid "
        f"{'run' if most == 1 else 'runs'} of each setting."
    )


def headlines(found: Findings) -> list[str]:
    """A sentence for each network and pair of the declared family: its mean gain in Speed Index, and the sites."""
    return [
        sentence
        for network in found.samples.networks
        for pair in found.hypotheses.family
        if (sentence := headline(found, network, pair, HEADLINE))
    ]


def headline(found: Findings, network: str, pair: Pair, metric: str) -> str:
    """One network and pair in one metric; empty when there is nothing to tell."""
    key = {"reference": pair.reference, "compared": pair.compared, "network": network, "metric": metric}
    total, gained = _row(found.over_sites, key), _row(found.summary, key)
    if total is None or gained is None or math.isnan(total["gain"]):
        return ""
    way = "lower" if total["gain"] < 0 else "higher"
    size = f"{abs(100 * total['gain']):.1f} % {way}"
    counts = found.contrasts
    for column, value in key.items():
        counts = counts[counts[column] == value]
    # Over one site there is no interval but that of its own runs.
    one_site = len(counts) == 1
    whose_interval = dict(counts.iloc[0]) if one_site else total
    low, high = whose_interval["gain_low"], whose_interval["gain_high"]
    bounds = ""
    if math.isfinite(low) and math.isfinite(high):
        whose = "for this site alone, " if one_site else ""
        confidence = f"{100 * found.hypotheses.confidence:g} %"
        bounds = f" ({whose}{confidence} interval {percent(low)} to {percent(high)})"
    told = counts["finding"].value_counts()
    beyond = ", ".join(f"{told.get(name, 0)} {name}" for name in ("faster", "slower", "equivalent", "undecided"))
    sites = int(gained["sites"])
    sentence = (
        f"Behind {named(network)}, {named(pair.compared)}'s {named(metric)} is on average {size} than "
        f"{named(pair.reference)}'s{bounds}: by the paper's test faster on {gained['faster']} of "
        f"{counted('site', sites)}, slower on {gained['slower']}, no difference on {gained['no_difference']}"
        + (f", untested on {gained['untested']}" if gained["untested"] else "")
        + f"; corrected for the number of tests, {beyond}."
    )
    paper = _row(found.paper, key | {"kind": "mean_gain"})
    if paper is not None:
        sentence += f" The paper has {percent(paper['value'], 0)} over {PAPER_SITES} sites."
    return sentence


def warnings(found: Findings) -> list[str]:
    """What limits the trust in all of this."""
    told = []
    sites = len(found.samples.sites)
    if found.campaign.document["settings"].get("auto"):
        told.append(
            "The number of runs was left to the stopping rule: it holds the level of its own decisions, but the "
            "p values and intervals here take the runs as fixed beforehand; what was stopped early exaggerates a bit."
        )
    if "simulated" in found.campaign.document:
        told.append("This campaign is simulated: nothing in it was measured.")
    if sites < 2:
        told.append("One site: nothing can be said of others, and there are no intervals over sites.")
    elif sites < 10:
        told.append(f"{sites} sites: the intervals over sites are wide, and rest on the sites being like others.")
    runs = found.campaign.runs
    per_setting = runs[runs["valid"]].groupby(["network", "site", "protocol"]).size()
    if per_setting.min() < 5:
        told.append(
            f"The fewest valid runs of a setting are {int(per_setting.min())}: "
            "one site's test finds only large differences."
        )
    for row in found.drift.to_dict("records"):
        if row["warning"]:
            told.append(
                f"{named(row['metric'])} {row['warning']} ({percent(row['drift'])} from the first run to the last); "
                "blocks and their random order keep that from favouring a protocol."
            )
    for row in found.exclusion_rates.to_dict("records"):
        if row["warning"]:
            told.append(
                f"{named(row['protocol'])} behind {named(row['network'])} lost {row['excluded']} of {row['attempts']} "
                f"attempts, more than the others: what is left is a selection."
            )
    for row in found.canaries.to_dict("records"):
        if row["warning"]:
            told.append(
                f"{named(row['metric'])} goes with the canary {row['canary']} (rho = {row['correlation']:.2f})."
            )
    for row in found.aa_calibration.to_dict("records"):
        if row["warning"]:
            told.append(
                f"Tests of nothing ({row['kind']}, {named(row['metric'])}) find something in "
                f"{100 * row['found']:.1f} % of {row['tests']} where {100 * row['level']:g} % should: "
                "p values here are too small."
            )
    unusual = found.contrasts[found.contrasts["note"].str.contains(UNUSUAL)]
    if len(unusual):
        told.append(
            f"{len(unusual)} of {len(found.contrasts)} comparisons rest on runs that ask for a look (see there)."
        )
    missing = [metric for metric in METRICS if runs.loc[runs["valid"], metric].isna().any()]
    if missing:
        told.append(f"Valid runs lack some metrics: {_list([named(metric) for metric in missing])}.")
    return told


def paper_agreement(found: Findings) -> str:
    """How many of the paper's numbers the campaign has, agrees with in sign, and covers."""
    table = found.paper
    has = table[table["ours"].notna()]
    if has.empty:
        return f"This campaign has none of the paper's {len(table)} numbers."
    signed, bounded = has[has["same_sign"] != ""], has[has["covered"] != ""]
    return (
        f"Of the paper's {len(table)} numbers this campaign has {len(has)}. Of {len(signed)} with a sign it agrees in "
        f"{int((signed['same_sign'] == 'yes').sum())}; of {len(bounded)} with an interval, "
        f"{int((bounded['covered'] == 'yes').sum())} intervals cover the paper's value. Its browser, QUIC version and "
        "sites are not the paper's, so a difference is no error on either side."
    )


def _row(table: pd.DataFrame, key: dict[str, str]) -> dict[str, Any] | None:
    for column, value in key.items():
        table = table[table[column] == value] if len(table) else table
    return dict(table.iloc[0]) if len(table) else None


def _list(names: list[str]) -> str:
    return names[0] if len(names) < 2 else ", ".join(names[:-1]) + f" and {names[-1]}"
