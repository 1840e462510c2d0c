"""The results of a campaign in sentences. Every number in them is from the campaign's tables."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from analysis.attempts import RUN, SETTING
from analysis.balance import place_test
from analysis.findings import Findings
from analysis.paper.comparison import PAPER_SITES
from analysis.processor import lacks_uwsgi
from analysis.report.conditions import of_conditions
from analysis.report.verdicts import clauses, verdict_in_words, verdict_table
from analysis.report.warnings import (
    of_balance,
    of_carry_over,
    of_deviations,
    of_impossible_waits,
    of_losses,
    of_missing_times,
    of_rejections,
    of_single_sites,
    of_stability,
    of_waits,
    of_wandering,
)
from analysis.runs import CampaignTable, records, rows_of
from analysis.samples import missing_times
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import FASTER, FEW_RUNS, FEW_SITES, LEAST_SITES, SLOWER
from analysis.statistics.samples import OVER_SITES
from analysis.stopping import decided_cells, saving
from analysis.text import label, level, listing, percent, percent_interval, plural, span
from base.words import in_words
from dataset.metrics import time_names
from dataset.plan import read_plan
from dataset.table import GivenUp, read_given_up
from tuning.devices import described

# The metric of the headlines if it is declared; else the first declared metric is used.
HEADLINE = "si"


def scope(findings: Findings) -> str:
    """The scope of the measurement, and how many of its runs were planned, tried and count."""
    campaign, measured = findings.campaign, len(findings.samples.sites)
    networks, protocols = (
        [label(name) for name in names]
        for names in (
            dict.fromkeys(campaign.clients[name].network for name in campaign.networks or findings.samples.networks),
            campaign.protocols or findings.samples.protocols,
        )
    )
    planned = len(campaign.settings.sites)
    sites = plural("site", measured) if planned <= measured else f"{measured} of {plural('site', planned)}"
    names = [described(name) for name in campaign.browsers]
    browsers = f" in {listing(names)} ({names[0]} where no browser is named)" if len(names) > 1 else ""
    return f"{sites} on {listing(networks)} over {listing(protocols)}{browsers}. {account(findings)}"


def account(findings: Findings) -> str:
    """How many runs were planned, if the campaign has its plan; how many were tried, and how many of these count."""
    campaign, runs = findings.campaign, findings.campaign.runs
    planned, tried = sum(map(len, read_plan(campaign.folder))), runs.groupby(RUN).ngroups
    text = f"{planned:,} runs were planned, {tried:,} were tried" if planned else f"{tried:,} runs were tried"
    each = span(*runs_per_setting(findings))
    count = f"{int(runs['valid'].sum()):,} count: {each} of each setting"
    return f"{text} ({plural('attempt', len(runs))}), and {count}."


def runs_per_setting(findings: Findings) -> tuple[int, int]:
    """The fewest and the most valid runs of a setting of the campaign's whole grid."""
    sizes = findings.campaign.valid.groupby(SETTING).size()
    return 0 if len(findings["empty_settings"]) else int(sizes.min()), int(sizes.max())


def headlines(findings: Findings) -> list[str]:
    """A sentence for each contrast of the declared family in the metric of the headlines."""
    return [headline(findings, row) for row in headline_rows(findings).to_dict("records")]


def headline_rows(findings: Findings) -> pd.DataFrame:
    """The rows of `verdict_table` in the metric of the headlines."""
    metrics = findings.declared.family_metrics
    return rows_of(verdict_table(findings), metric=HEADLINE if HEADLINE in metrics else next(iter(metrics), HEADLINE))


def headline(findings: Findings, row: Mapping[str, Any]) -> str:
    """A sentence on one contrast of the declared family, a row of `verdict_table`: its gain over sites, its verdict
    with what stands beside it, and the counts of the paper's test."""
    place = f"On {label(row['network'])}"
    names = f"{label(row['compared'])} against {label(row['reference'])} in {label(row['metric'])}"
    if not row["blocks"]:
        return f"{place}: {names} is {row['verdict']}; no block has a usable {label(row['metric'])} of both."
    bounds = ""
    if math.isfinite(row["gain_low"]):
        interval = percent_interval(row["gain_low"], row["gain_high"])
        bounds = f", {level(findings.declared.confidence)} interval {interval}"
    key = {name: row[name] for name in OVER_SITES}
    verdict = "; ".join([verdict_in_words(row), *clauses(findings, row)])
    sentence = (
        f"{place}, {label(row['compared'])}'s {label(row['metric'])} is {percent(abs(row['gain'])).lstrip('+')} "
        f"{'lower' if row['gain'] < 0 else 'higher'} than {label(row['reference'])}'s ({plural('site', row['sites'])}, "
        f"{plural('pair', row['blocks'])} of runs{bounds}): {verdict}."
    )
    sites = _row(findings["over_sites"], key)
    if sites is not None:
        untested = f", untested on {sites['untested']}" if sites["untested"] else ""
        sentence += (
            f" The paper's test calls it faster on {sites['faster']} of {plural('site', int(sites['sites']))}, slower "
            f"on {sites['slower']}, no difference on {sites['no_difference']}{untested}."
        )
    paper = _row(findings["paper"], key | {"kind": "mean_gain"})
    if paper is not None:
        sentence += f" The paper has {percent(paper['value'], 0)} over {PAPER_SITES} sites."
    return sentence


def equivalence_margin(declared: Hypotheses, campaign: CampaignTable) -> str:
    """The difference below which protocols count as equivalent, in words: in round trips, and as the declared share of
    the time on those networks of `campaign` that have no RTT."""
    without = [label(name) for name in campaign.networks if name not in campaign.rtt_ms]
    margin = f"{level(declared.equivalence_margin)} of the reference's time"
    if not declared.equivalence_round_trips or (without and len(without) == len(campaign.networks)):
        return margin
    round_trips = f"{declared.equivalence_round_trips:g} round trips of the network"
    return f"{round_trips}, or {margin} where it has no RTT ({listing(without)})" if without else round_trips


def warnings(findings: Findings) -> list[str]:
    """The warnings that a reader must know before trusting the results."""
    texts = []
    sites = len(findings.samples.sites)
    if findings.campaign.settings.auto:
        saved = saving(findings.campaign.folder, decided_cells(findings.campaign, findings.declared))
        total = saved.runs + saved.made_runs
        share = f" and saved {saved.runs} of {total} (about {in_words(saved.seconds)})" if saved.runs else ""
        texts.append(
            f"The stopping rule chose the number of runs{share}. The verdicts and intervals of the declared hypotheses "
            "allow for that. All other changes, p values and intervals take the runs as fixed beforehand, and "
            "exaggerate differences."
        )
    differs = findings["confirmatory"]["verdict"].isin((FASTER, SLOWER))
    if findings["confirmatory"].loc[differs, "gain_shrunken"].notna().any():
        texts.append(
            "A change that ended a network early is larger than the truth on average. The table of the declared "
            "hypotheses has it shrunken, too."
        )
    if "simulated" in findings.campaign.document.further:
        texts.append("This campaign is simulated: nothing in it was measured.")
    if sites < LEAST_SITES:
        texts.append("One site: nothing can be said of others.")
    elif sites < FEW_SITES:
        texts.append(
            f"{sites} sites are few. The intervals over sites are wide, and assume that the sites are like others."
        )
    texts += _of_given_up(read_given_up(findings.campaign.folder))
    least, _ = runs_per_setting(findings)
    if 0 < least < FEW_RUNS:
        texts.append(f"The fewest valid runs of a setting are {least}. One site's test finds only large differences.")
    texts += of_deviations(findings.campaign, findings.declared, findings["success_rates"])
    given_up = findings.campaign.given_up
    texts += of_losses(findings["success_rates"], findings["empty_settings"], findings["loss_bounds"], given_up)
    texts += of_rejections(findings["rejections"], findings["success_rates"])
    texts += of_missing_times(missing_times(findings.campaign))
    texts += of_balance(findings["pair_balance"], place_test(findings.campaign))
    cores, without_uwsgi = findings.campaign.document.cores_of_a_run, lacks_uwsgi(findings.campaign)
    texts += of_waits(findings["processor_waits"], cores, without_uwsgi=without_uwsgi)
    texts += of_impossible_waits(findings.campaign.valid)
    texts += of_conditions(findings.campaign.document)
    texts += of_single_sites(_of_family(findings, findings["contrasts"]), findings["sensitivity"])
    texts += of_stability(findings["halves"], findings["drift"], findings["steps"])
    texts += of_carry_over(findings["carry_over"])
    texts += of_wandering(findings["wandering"])
    texts += [
        f"Tests of equal samples (A/A, {label(row['metric'])}) find a difference in "
        f"{100 * row['found']:.1f} % of {row['tests']}, and should in {100 * row['level']:g} %: "
        "p values here are too small."
        for row in records(findings["aa_calibration"])
        if row["warning"]
    ]
    unusual, comparisons = len(findings["unusual"]), len(findings["contrasts"])
    if unusual > comparisons / 2:
        texts.append(
            f"{unusual} of {comparisons} comparisons of single sites have unusual runs. Times far from the others are "
            "common here, and widen intervals."
        )
    return texts


def remarks(findings: Findings) -> list[str]:
    """Facts about the data that are no faults."""
    metrics, valid = findings.samples.metrics, findings.campaign.valid
    texts = []
    unusual, comparisons = len(findings["unusual"]), len(findings["contrasts"])
    if 0 < unusual <= comparisons / 2:
        texts.append(f"{unusual} of {comparisons} comparisons of single sites have unusual runs.")
    if absent := [label(metric) for metric in time_names() if metric not in metrics]:
        texts.append(f"The campaign has no column of {listing(absent)}: what rests on them is missing.")
    named = set(missing_times(findings.campaign)["metric"])
    if incomplete := [label(metric) for metric in metrics if metric not in named and valid[metric].isna().any()]:
        texts.append(f"Valid runs lack some metrics: {listing(incomplete)}.")
    if findings["residuals"].empty:
        texts.append("No valid run has a known start, so drift and effects of the order could not be looked for.")
    return texts


def _of_given_up(entries: Iterable[GivenUp]) -> list[str]:
    """A warning for each site that was withdrawn, or that was given up, with the networks."""
    of_site: dict[tuple[str, bool], list[GivenUp]] = {}
    for entry in entries:
        of_site.setdefault((entry.site, entry.withdrawn is not None), []).append(entry)
    texts = []
    for (site, is_withdrawn), given_up in of_site.items():
        networks, runs = listing([label(entry.network) for entry in given_up]), sum(entry.runs for entry in given_up)
        reasons = [f"{label(entry.network)}: {entry.withdrawn if is_withdrawn else entry.reason}" for entry in given_up]
        texts.append(
            f"{site} was withdrawn on {networks}. Its runs there do not count, and {runs} were not made. "
            f"{'. '.join(reasons)}."
            if is_withdrawn
            else f"{site} failed alike over all protocols on {networks}. So {runs} of its runs were not made; the last "
            f"reason was, on {'; on '.join(reasons)}."
        )
    return texts


def _of_family(findings: Findings, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `table` on the contrasts of the declared family."""
    pairs = pd.MultiIndex.from_frame(table[["reference", "compared"]]).isin(findings.declared.family)
    return table[pairs & table["metric"].isin(findings.declared.family_metrics)]


def _row(table: pd.DataFrame, key: Mapping[str, str]) -> dict[str, Any] | None:
    rows = rows_of(table, **key)
    return dict(rows.iloc[0]) if len(rows) else None
