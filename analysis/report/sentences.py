"""The results of a campaign in sentences; every number in them is from its tables."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.comparison import PAPER_SITES
from analysis.findings import Findings
from analysis.hypotheses import Pair
from analysis.outcomes import BEYOND_THE_PAPER, FEW_RUNS, FEW_SITES, LEAST_SITES
from analysis.runs import CampaignTable, rows_of
from analysis.text import label, listing, percent, plural, span
from measure.metrics import metric_names
from measure.table import read_given_up

# The metric of the headlines.
HEADLINE = "si"


def scope(findings: Findings) -> str:
    """What was measured."""
    runs, samples = findings.campaign.runs, findings.samples
    least, most = runs_per_setting(findings.campaign)
    networks, protocols = ([label(name) for name in names] for names in (samples.networks, samples.protocols))
    return (
        f"{plural('site', len(samples.sites))} behind {listing(networks)} over {listing(protocols)}: "
        f"{len(runs)} attempts, of which {int(runs['valid'].sum())} count, {span(least, most)} valid "
        f"{'run' if most == 1 else 'runs'} of each setting."
    )


def runs_per_setting(campaign: CampaignTable) -> tuple[int, int]:
    """The fewest and the most valid runs of a setting that has any."""
    sizes = campaign.valid.groupby(["network", "site", "protocol"]).size()
    return int(sizes.min()), int(sizes.max())


def headlines(findings: Findings) -> list[str]:
    """A sentence for each network and pair of the declared family: its mean gain in Speed Index, and the sites."""
    return [
        sentence
        for network in findings.samples.networks
        for pair in findings.hypotheses.family
        if (sentence := headline(findings, network, pair, HEADLINE))
    ]


def headline(findings: Findings, network: str, pair: Pair, metric: str) -> str:
    """One network and pair in one metric; empty without a gain."""
    key = {**pair._asdict(), "network": network, "metric": metric}
    total, sites = _row(findings["over_sites"], key), _row(findings["summary"], key)
    if total is None or sites is None or math.isnan(total["gain"]):
        return ""
    change = f"{abs(100 * total['gain']):.1f} % {'lower' if total['gain'] < 0 else 'higher'}"
    contrasts = rows_of(findings["contrasts"], **key)
    # One site has no interval but that of its own runs.
    is_one_site = len(contrasts) == 1
    source = dict(contrasts.iloc[0]) if is_one_site else total
    low, high = source["gain_low"], source["gain_high"]
    bounds = ""
    if math.isfinite(low) and math.isfinite(high):
        scope_of_interval = "for this site alone, " if is_one_site else ""
        confidence = f"{100 * findings.hypotheses.confidence:g} %"
        bounds = f" ({scope_of_interval}{confidence} interval {percent(low)} to {percent(high)})"
    counts = contrasts["finding"].value_counts()
    corrected = ", ".join(f"{counts.get(name, 0)} {name}" for name in BEYOND_THE_PAPER)
    sentence = (
        f"Behind {label(network)}, {label(pair.compared)}'s {label(metric)} is on average {change} than "
        f"{label(pair.reference)}'s{bounds}: by the paper's test faster on {sites['faster']} of "
        f"{plural('site', int(sites['sites']))}, slower on {sites['slower']}, no difference on {sites['no_difference']}"
        + (f", untested on {sites['untested']}" if sites["untested"] else "")
        + f"; corrected for the number of tests, {corrected}."
    )
    paper = _row(findings["paper"], key | {"kind": "mean_gain"})
    if paper is not None:
        sentence += f" The paper has {percent(paper['value'], 0)} over {PAPER_SITES} sites."
    return sentence


def warnings(findings: Findings) -> list[str]:
    """What a reader must know before trusting the results."""
    texts = []
    sites = len(findings.samples.sites)
    if findings.campaign.document.settings.get("auto"):
        texts.append(
            "The stopping rule chose the number of runs. It holds the level of its own decisions, but the p values and "
            "intervals here take the runs as fixed beforehand; settings that stopped early exaggerate differences."
        )
    if "simulated" in findings.campaign.document.further:
        texts.append("This campaign is simulated: nothing in it was measured.")
    if sites < LEAST_SITES:
        texts.append("One site: nothing can be said of others, and there are no intervals over sites.")
    elif sites < FEW_SITES:
        texts.append(f"{sites} sites: the intervals over sites are wide, and assume that the sites are like others.")
    for entry in read_given_up(findings.campaign.folder):
        texts.append(
            f"{entry.site} behind {label(entry.network)} failed alike over all protocols, so {entry.runs} of its runs "
            f"were not made; the last reason was {entry.reason}."
        )
    least, _ = runs_per_setting(findings.campaign)
    if least < FEW_RUNS:
        texts.append(f"The fewest valid runs of a setting are {least}: one site's test finds only large differences.")
    texts += [
        f"{label(row['metric'])} {row['warning']} ({percent(row['drift'])} from the first run to the last); "
        "blocks and their random order keep that from favouring a protocol."
        for row in _with_warning(findings["drift"])
    ]
    texts += [
        f"{label(row['protocol'])} behind {label(row['network'])} lost {row['excluded']} of {row['attempts']} "
        f"attempts, more than the others: the valid runs are a selection."
        for row in _with_warning(findings["exclusion_rates"])
    ]
    texts += [
        f"{label(row['metric'])} goes with the canary {row['canary']} (rho = {row['correlation']:.2f})."
        for row in _with_warning(findings["canaries"])
    ]
    texts += [
        f"Tests of equal samples ({row['kind']}, {label(row['metric'])}) find a difference in "
        f"{100 * row['found']:.1f} % of {row['tests']}, and should in {100 * row['level']:g} %: "
        "p values here are too small."
        for row in _with_warning(findings["aa_calibration"])
    ]
    if unusual := len(findings["unusual"]):
        texts.append(
            f"{unusual} of {len(findings['contrasts'])} comparisons have unusual runs (see the table of these)."
        )
    metrics = findings.samples.metrics
    if absent := [label(metric) for metric in metric_names() if metric not in metrics]:
        texts.append(f"The campaign has no column of {listing(absent)}: what rests on them is missing.")
    if incomplete := [label(metric) for metric in metrics if findings.campaign.valid[metric].isna().any()]:
        texts.append(f"Valid runs lack some metrics: {listing(incomplete)}.")
    return texts


def paper_agreement(findings: Findings) -> str:
    """The number of the paper's numbers that the campaign has, agrees with in sign, and covers."""
    table = findings["paper"]
    available = table[table["ours"].notna()]
    if available.empty:
        return f"This campaign has none of the paper's {len(table)} numbers."
    signs, covers = available["same_sign"], available["covered"]
    return (
        f"Of the paper's {len(table)} numbers this campaign has {len(available)}. Of {(signs != '').sum()} with a sign "
        f"it agrees in {(signs == 'yes').sum()}; of {(covers != '').sum()} with an interval, {(covers == 'yes').sum()} "
        "intervals cover the paper's value. Its browser, QUIC version and sites are not the paper's, so a difference "
        "is no error on either side."
    )


def _with_warning(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [row for row in table.to_dict("records") if row["warning"]]


def _row(table: pd.DataFrame, key: Mapping[str, str]) -> dict[str, Any] | None:
    rows = rows_of(table, **key)
    return dict(rows.iloc[0]) if len(rows) else None
