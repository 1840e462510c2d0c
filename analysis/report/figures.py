"""The figures of a campaign's report: the name, the caption and the drawing of each."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysis.figures import (
    calibration,
    exclusion_bars,
    figure1,
    figure3,
    figure4,
    forest,
    order,
    paper_beside,
    runs_needed,
    sites_map,
    within,
)
from analysis.films import Strip
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.run_files import files_of
from analysis.report.section import ReportFigure
from analysis.runs import rows_of
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.statistics.planning import NEEDED
from analysis.text import file_name, label, level, pair_label, plural

# The metric of figures of single runs, where a campaign has it.
SINGLE_RUN_METRIC = "si"
STOCK = "tcp"


def campaign_figures(findings: Findings, strips: list[list[Strip]]) -> dict[str, list[ReportFigure]]:
    """Section of the page → its figures: all that the campaign has data for."""
    samples, hypotheses = findings.samples, findings.hypotheses
    networks, protocols, metrics = samples.networks, samples.protocols, samples.metrics
    single_run_metric = SINGLE_RUN_METRIC if SINGLE_RUN_METRIC in metrics else metrics[0]
    confidence = level(findings.declared.confidence)
    figures: dict[str, list[ReportFigure]] = defaultdict(list)

    def add(section: str, name: str, caption: str, finding: str, draw: Callable[..., Figure], *arguments: Any) -> None:
        figures[section].append(ReportFigure(name, caption, draw, arguments, finding))

    if len(findings["sites"]):
        caption, finding = "Download size and number of servers of each site.", alternatives.sites(findings["sites"])
        add("sites", "figure1", caption, finding, figure1.draw, findings["sites"])
    reference = STOCK if STOCK in protocols else protocols[0]
    against = findings["gains"][findings["gains"]["reference"] == reference]
    if len(against):
        caption = (
            f"Distribution over {plural('site', against['site'].nunique())} of the gain against "
            f"{label(reference)}; negative (left of the line) is faster. An axis leaves out gains far from "
            "the others of its row, and ends at twice the time; a number says how many lie beyond."
        )
        finding = alternatives.distribution(against, single_run_metric)
        add("paper", "figure3", caption, finding, figure3.draw, findings["gains"], networks, protocols, reference)
    # Those of the declared family come first: the page shows the first one open.
    for pair in sorted(hypotheses.comparisons, key=lambda pair: pair not in hypotheses.family):
        gains = findings.gains_of(pair)
        if len(gains):
            title = pair_label(pair.compared, pair.reference)
            caption = f"{title}: each site's gain in percent; bold where p < {SIGNIFICANT_P} (the paper's ANOVA)."
            finding = alternatives.site_by_site(gains, single_run_metric)
            name = file_name(f"sites_{pair.compared}_against_{pair.reference}")
            add("by_site", name, caption, finding, sites_map.draw, gains, networks, metrics, pair, samples.sites)
    if findings["paper"]["ours"].notna().any():
        caption = f"The paper's numbers beside this campaign's, with their {confidence} intervals over sites."
        finding = alternatives.beside_the_paper(findings["paper"])
        add("beside", "beside_the_paper", caption, finding, paper_beside.draw, findings["paper"])
    if findings["confirmatory"]["blocks"].any():
        for metric in findings.declared.family_metrics:
            rows = rows_of(findings["confirmatory"], metric=metric)
            caption = f"Gain in {label(metric)} over the sites of this campaign, " + (
                f"with its {confidence} interval."
                if rows["gain_low"].notna().any()
                else "without an interval: there are too few blocks."
            )
            axes = (findings.networks, metric, findings.declared.family)
            finding = alternatives.family(rows)
            add("confirmatory", f"confirmatory_{metric}", caption, finding, forest.draw_confirmatory, rows, *axes)
    if len(findings["aggregates"]):
        caption = f"Mean gain over sites with two {confidence} intervals that hold for sites like these."
        intervals = (networks, metrics, hypotheses.comparisons)
        finding = alternatives.over_sites(findings["aggregates"], single_run_metric)
        add("beyond", "over_sites", caption, finding, forest.draw, findings["aggregates"], *intervals)
    if len(findings["power"]):
        caption = "Runs of each protocol and site that a difference over sites needs; the line is at the paper's 31."
        finding = alternatives.runs_needed(findings["power"], NEEDED[0.05], "5 %")
        add("power", "runs_needed", caption, finding, runs_needed.draw, findings["power"], networks)
    for number, group in enumerate(strips, start=1):
        shot = group[0].shot
        caption = f"{shot.site} behind {label(shot.network)}: one typical run of each protocol."
        finding = alternatives.strip({strip.shot.protocol: strip.shot.metrics for strip in group})
        name = f"figure4_{shot.network}_{number}"
        figures["films"].append(ReportFigure(name, caption, figure4.draw, (group,), finding, _files_of_runs(group)))
    if len(findings["residuals"]):
        caption = "Each run's distance from its setting's median, over the campaign and by its place in the block."
        finding = alternatives.order(findings["residuals"], single_run_metric)
        runs = (findings["residuals"], single_run_metric, findings.canary)
        add("diagnostics", "order", caption, finding, order.draw, *runs)
    if len(findings["aa_p_values"]):
        caption = f"p values of tests of equal samples; they should follow the diagonal, in its {confidence} band."
        finding = alternatives.calibration(findings["aa_p_values"])
        tests = (findings["aa_p_values"], findings.declared.confidence)
        add("diagnostics", "calibration", caption, finding, calibration.draw, *tests)
    if len(findings["exclusions"]):
        caption = "Share of attempts that do not count, by gate."
        tables = (findings["success_rates"], findings["exclusions"])
        attempts = tables[0].set_index(["network", "protocol"])["attempts"]
        finding = alternatives.exclusions(findings["exclusions"], attempts)
        add("diagnostics", "exclusions", caption, finding, exclusion_bars.draw, *tables, networks, protocols)
    for network in networks:
        caption = f"Every valid run behind {label(network)}; the ticks are medians."
        finding = alternatives.within(samples, network, single_run_metric, protocols)
        runs_of = (samples, network, single_run_metric, protocols)
        add("within", f"within_{network}", caption, finding, within.draw, *runs_of)
    return figures


def _files_of_runs(strips: list[Strip]) -> dict[str, Path]:
    """The files that the runs in `strips` have left, except their films."""
    return {
        f"{label(strip.shot.protocol)} run {strip.shot.run}: {text}": path
        for strip in strips
        for files in files_of(strip.shot.film.parent).values()
        for text, path in files.items()
    }
