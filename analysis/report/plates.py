"""The figures of a report: what each is called, says, and is drawn by."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysis.figures import (
    bands,
    calibration,
    exclusion_bars,
    figure3,
    figure4,
    forest,
    order,
    paper_beside,
    runs_needed,
    sites_map,
    style,
    within,
)
from analysis.films import Strip
from analysis.gain import exclusions
from analysis.report.findings import Findings
from analysis.report.views import counted
from analysis.runs import METRICS
from analysis.sites import draw_sites

# The metric in which single runs are shown.
LOOKED_AT = "si"
STOCK = "tcp"


@dataclass(frozen=True)
class Plate:
    """A figure: the name of its files, the section it stands in, its caption, and how it is drawn."""

    name: str
    section: str
    caption: str
    draw: Callable[..., Figure]
    arguments: tuple[Any, ...]

    def write(self, folder: Path) -> str:
        """Draw it, as PDF and PNG in `folder`; returns its name."""
        style.save(self.draw(*self.arguments), folder, self.name)
        return self.name


def plates(found: Findings, strips: list[list[Strip]]) -> list[Plate]:
    """Every figure that the campaign has data for."""
    measured, hypotheses = found.samples, found.hypotheses
    networks, protocols = measured.networks, measured.protocols
    made = []

    def add(name: str, section: str, caption: str, draw: Callable[..., Figure], *arguments: Any) -> None:
        made.append(Plate(name, section, caption, draw, arguments))

    if len(found.sites):
        add("figure1", "sites", "Download size and number of servers of each site.", draw_sites, found.sites)
    reference = STOCK if STOCK in protocols else protocols[0]
    against = found.gained[found.gained["reference"] == reference]
    if len(against):
        caption = (
            f"Distribution over {counted('site', against['site'].nunique())} of the gain against "
            f"{style.named(reference)}; negative (left of the line) is faster."
        )
        add("figure3", "paper", caption, figure3.draw, found.gained, networks, protocols, reference)
    for pair in hypotheses.comparisons:
        own = found.gained[(found.gained["reference"] == pair.reference) & (found.gained["compared"] == pair.compared)]
        if len(own):
            words = f"{style.named(pair.compared)} against {style.named(pair.reference)}"
            name = f"sites_{pair.compared}_against_{pair.reference}".replace("+", "plus")
            caption = f"{words}: each site's gain in percent; bold where p < 0.01 (ANOVA)."
            add(name, "by_site", caption, sites_map.draw, own, networks, METRICS, pair)
    if found.paper["ours"].notna().any():
        caption = "The paper's numbers beside this campaign's, with their intervals over sites."
        add("beside_the_paper", "beside", caption, paper_beside.draw, found.paper)
    if len(found.over_sites):
        caption = "Mean gain over sites with two intervals that hold for sites like these."
        pairs = hypotheses.comparisons
        add("over_sites", "beyond", caption, forest.draw, found.over_sites, networks, METRICS, pairs)
    if len(measured.sites) > 1:
        caption = "Distribution of the gain over sites, with the band in which the true one lies as a whole."
        family = (hypotheses.family, hypotheses.family_metrics, hypotheses.confidence)
        add("bands", "beyond", caption, bands.draw, found.gained, networks, protocols, *family)
    caption = "Runs of each protocol that a difference needs, on half of the sites; the line is at the paper's 31."
    add("runs_needed", "power", caption, runs_needed.draw, found.power, networks, METRICS)
    for number, group in enumerate(strips, start=1):
        shot = group[0].shot
        caption = f"{shot.site} behind {style.named(shot.network)}: one typical run of each protocol."
        add(f"figure4_{shot.network}_{number}", "films", caption, figure4.draw, group)
    caption = "Each run's distance from its setting's median over the campaign and by its place in the block."
    if len(found.off):
        add("order", "diagnostics", caption, order.draw, found.off, LOOKED_AT, found.canary)
    caption = "p values of tests in which there is nothing to find; they should follow the diagonal."
    if len(found.aa_p_values):
        interval = hypotheses.confidence
        add("calibration", "diagnostics", caption, calibration.draw, found.aa_p_values, interval)
    gates = exclusions(found.campaign.runs)
    if len(gates):
        caption = "Share of attempts that do not count, by reason."
        rates = found.exclusion_rates
        add("exclusions", "diagnostics", caption, exclusion_bars.draw, rates, gates, networks, protocols)
    for network in networks:
        caption = f"Every valid run behind {style.named(network)}; the ticks are medians."
        arguments = (measured, network, LOOKED_AT, protocols)
        add(f"within_{network}", "within", caption, within.draw, *arguments)
    return made
