"""The gains as in the paper: over all sites, and site by site."""

import math
from collections.abc import Iterator

import pandas as pd

from analysis.figures import figure3, sites_map
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import tables_of
from analysis.runs import rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.text import file_name, label, listing, pair_label, percent, plural

STOCK = "tcp"


def section(findings: Findings) -> Section:
    """The section of the gains as in the paper."""
    protocols, gains = findings.samples.protocols, findings["gains"]
    reference = STOCK if STOCK in protocols else protocols[0]
    against = gains[gains["reference"] == reference]
    figures: tuple[ReportFigure, ...] = ()
    if len(against):
        caption = (
            f"Distribution over {plural('site', against['site'].nunique())} of the gain against "
            f"{label(reference)}; negative (left of the line) is faster. An axis leaves out gains far from "
            "the others of its row, and ends at twice the time; a number says how many lie beyond."
        )
        finding = alternatives.distribution(against, findings.single_run_metric)
        arguments = (gains, findings.samples.networks, protocols, reference)
        figures = (ReportFigure("figure3", caption, figure3.draw, arguments, finding),)
    by_site = Section(
        "by_site",
        "Site by site",
        figures=tuple(_maps(findings)),
        tables=tuple(gains_by_site(findings, pair) for pair in findings.hypotheses.comparisons),
    )
    names = ("mean_gains", "table3_one_server") if len(findings["contrasts"]) else ()
    return Section("paper", "As in the paper", figures=figures, tables=tables_of(findings, *names), parts=(by_site,))


def _maps(findings: Findings) -> Iterator[ReportFigure]:
    """The gains of each pair, site by site; first those of the declared family, since the page shows the first one."""
    samples, hypotheses = findings.samples, findings.hypotheses
    for pair in sorted(hypotheses.comparisons, key=lambda pair: pair not in hypotheses.family):
        gains = rows_of(findings["gains"], **pair._asdict())
        if len(gains):
            title = pair_label(pair.compared, pair.reference)
            caption = f"{title}: each site's gain in percent; bold where p < {SIGNIFICANT_P} (the paper's ANOVA)."
            finding = alternatives.site_by_site(gains, findings.single_run_metric)
            name = file_name(f"sites_{pair.compared}_against_{pair.reference}")
            arguments = (gains, samples.networks, samples.metrics, pair, samples.sites)
            yield ReportFigure(name, caption, sites_map.draw, arguments, finding)


def gains_by_site(findings: Findings, pair: Pair) -> ReportTable:
    """Each site's gain in each metric, for one pair."""
    data = rows_of(findings["gains"], **pair._asdict())
    rows = []
    for (network, site), group in data.groupby(["network", "site"], sort=False):
        by_metric = group.set_index("metric")
        row = {"network": label(str(network)), "site": str(site)}
        for metric in findings.samples.metrics:
            cell = by_metric.loc[metric] if metric in by_metric.index else {"gain": math.nan, "p": math.nan}
            row[label(metric)] = percent(cell["gain"]) + ("*" if cell["p"] < SIGNIFICANT_P else "")
        row["runs"] = "; ".join(_runs_of_metrics(group))
        rows.append(row)
    title = f"{pair_label(pair.compared, pair.reference)}, site by site"
    name = file_name(f"gains_{pair.compared}_against_{pair.reference}")
    return ReportTable(name, title, data, pd.DataFrame(rows), f"* p < {SIGNIFICANT_P} (the paper's one-way ANOVA)")


def _runs_of_metrics(group: pd.DataFrame) -> list[str]:
    """The numbers of runs of both protocols: once where all metrics have the same, else of each group of metrics."""
    sizes = group.groupby(["runs_reference", "runs_compared"], sort=False)["metric"]
    if sizes.ngroups == 1:
        return [f"{reference}, {compared}" for (reference, compared), _ in sizes]
    return [
        f"{reference}, {compared} ({listing([label(metric) for metric in metrics])})"
        for (reference, compared), metrics in sizes
    ]


SECTION = CampaignSection("paper", place=20, of=section)
