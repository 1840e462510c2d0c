"""The figures of a campaign's report: the name, the caption and the drawing of each."""

from collections import defaultdict
from collections.abc import Callable
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
from analysis.outcomes import SIGNIFICANT_P
from analysis.report.section import ReportFigure
from analysis.text import file_name, label, pair_label, plural

# The metric of figures of single runs, where a campaign has it.
SINGLE_RUN_METRIC = "si"
STOCK = "tcp"


def campaign_figures(findings: Findings, strips: list[list[Strip]]) -> dict[str, list[ReportFigure]]:
    """Section of the page → its figures: all that the campaign has data for."""
    samples, hypotheses = findings.samples, findings.hypotheses
    networks, protocols, metrics = samples.networks, samples.protocols, samples.metrics
    single_run_metric = SINGLE_RUN_METRIC if SINGLE_RUN_METRIC in metrics else metrics[0]
    figures: dict[str, list[ReportFigure]] = defaultdict(list)

    def add(section: str, name: str, caption: str, draw: Callable[..., Figure], *arguments: Any) -> None:
        figures[section].append(ReportFigure(name, caption, draw, arguments))

    if len(findings["sites"]):
        add("sites", "figure1", "Download size and number of servers of each site.", figure1.draw, findings["sites"])
    reference = STOCK if STOCK in protocols else protocols[0]
    against = findings["gains"][findings["gains"]["reference"] == reference]
    if len(against):
        caption = (
            f"Distribution over {plural('site', against['site'].nunique())} of the gain against "
            f"{label(reference)}; negative (left of the line) is faster."
        )
        add("paper", "figure3", caption, figure3.draw, findings["gains"], networks, protocols, reference)
    for pair in hypotheses.comparisons:
        gains = findings.gains_of(pair)
        if len(gains):
            title = pair_label(pair.compared, pair.reference)
            caption = f"{title}: each site's gain in percent; bold where p < {SIGNIFICANT_P} (the paper's ANOVA)."
            name = file_name(f"sites_{pair.compared}_against_{pair.reference}")
            add("by_site", name, caption, sites_map.draw, gains, networks, metrics, pair)
    if findings["paper"]["ours"].notna().any():
        caption = "The paper's numbers beside this campaign's, with their intervals over sites."
        add("beside", "beside_the_paper", caption, paper_beside.draw, findings["paper"])
    if findings["confirmatory"]["blocks"].any():
        caption = "The declared hypotheses: gain over the sites of this campaign, with its 95 % interval."
        axes = (networks, hypotheses.family_metrics, hypotheses.family)
        add("confirmatory", "confirmatory", caption, forest.draw_confirmatory, findings["confirmatory"], *axes)
    if len(findings["aggregates"]):
        caption = "Mean gain over sites with two intervals that hold for sites like these."
        axes = (networks, metrics, hypotheses.comparisons)
        add("beyond", "over_sites", caption, forest.draw, findings["aggregates"], *axes)
    if len(findings["power"]):
        caption = "Runs of each protocol and site that a difference over sites needs; the line is at the paper's 31."
        add("power", "runs_needed", caption, runs_needed.draw, findings["power"], networks)
    for number, group in enumerate(strips, start=1):
        shot = group[0].shot
        caption = f"{shot.site} behind {label(shot.network)}: one typical run of each protocol."
        add("films", f"figure4_{shot.network}_{number}", caption, figure4.draw, group)
    if len(findings["residuals"]):
        caption = "Each run's distance from its setting's median, over the campaign and by its place in the block."
        add("diagnostics", "order", caption, order.draw, findings["residuals"], single_run_metric, findings.canary)
    if len(findings["aa_p_values"]):
        caption = "p values of tests of equal samples; they should follow the diagonal."
        add("diagnostics", "calibration", caption, calibration.draw, findings["aa_p_values"], hypotheses.confidence)
    if len(findings["exclusions"]):
        caption = "Share of attempts that do not count, by gate."
        tables = (findings["success_rates"], findings["exclusions"])
        add("diagnostics", "exclusions", caption, exclusion_bars.draw, *tables, networks, protocols)
    for network in networks:
        caption = f"Every valid run behind {label(network)}; the ticks are medians."
        add("within", f"within_{network}", caption, within.draw, samples, network, single_run_metric, protocols)
    return figures
