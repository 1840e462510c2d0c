"""The paper's claims and numbers, the changes as in the paper, and those by further methods."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.figures import figure3, forest, paper_beside, sites_map
from analysis.findings import Findings
from analysis.paper.claims import balance_of
from analysis.report import alternatives
from analysis.report.largest_paints import paint_table, paints
from analysis.report.section import EVERYTHING, PAPER, ReportFigure, ReportTable, Section, text_table
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import declared_values, report_table, tables_of
from analysis.runs import records, rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import LEAST_SITES, SIGNIFICANT_P, VERDICTS
from analysis.statistics.samples import OVER_SITES
from analysis.text import NOTHING, file_name, label, level, listing, number, pair_label, percent, plural, signed_ms
from dataset.metrics import METRICS

STOCK = "tcp"


def sections(findings: Findings) -> list[Section]:
    """The sections on the paper, if the campaign has any of its numbers, and those on single sites and means."""
    of_paper = [claims(findings), beside(findings)] if is_of_paper(findings) else []
    return [*of_paper, as_in_paper(findings), by_site(findings), beyond(findings)]


def is_of_paper(findings: Findings) -> bool:
    """Whether the campaign has any of the paper's numbers over sites."""
    return len(findings.samples.sites) >= LEAST_SITES and bool(findings["paper"]["ours"].notna().any())


def as_in_paper(findings: Findings) -> Section:
    """The section of the changes over all sites as in the paper."""
    protocols, gains = findings.samples.protocols, findings["gains"]
    reference = STOCK if STOCK in protocols else protocols[0]
    against = gains[gains["reference"] == reference]
    figures: tuple[ReportFigure, ...] = ()
    if (sites := against["site"].nunique()) >= LEAST_SITES:
        caption = (
            f"Distribution over {sites} sites of the change of the means against {label(reference)}; negative (left of "
            "the line) is faster. An axis leaves out changes far from the others of its row, and ends at twice the "
            "time; a number says how many lie beyond."
        )
        finding = alternatives.distribution(against, findings.single_run_metric)
        arguments = (gains, findings.samples.networks, protocols, reference)
        figures = (ReportFigure("figure3", caption, figure3.draw, arguments, finding),)
    names = ("mean_gains", "table3_one_server") if len(findings["contrasts"]) else ()
    page = PAPER if is_of_paper(findings) else EVERYTHING
    title = "Figures and tables of the paper" if page == PAPER else "Means over sites"
    return Section("paper", title, figures=figures, tables=tables_of(findings, *names), page=page)


def by_site(findings: Findings) -> Section:
    """The section of the changes of the means, site by site."""
    tables = tuple(gains_by_site(findings, pair) for pair in findings.hypotheses.comparisons)
    figures = tuple(_maps(findings)) if len(findings.samples.sites) >= LEAST_SITES else ()
    return Section("by_site", "Site by site", figures=figures, tables=tables, unfolded_figures=1, unfolded_rows=0)


def _figure_metrics(findings: Findings) -> tuple[str, ...]:
    """The metrics of figures with room for few: the paper's, or all if the campaign has none of these."""
    of_paper = {metric.name for metric in METRICS if not metric.is_of_web}
    return tuple(name for name in findings.samples.metrics if name in of_paper) or findings.samples.metrics


def _maps(findings: Findings) -> Iterator[ReportFigure]:
    """Maps of the changes of each pair, site by site. The pairs of the declared family come first, since the page shows
    the first map."""
    samples, hypotheses = findings.samples, findings.hypotheses
    for pair in sorted(hypotheses.comparisons, key=lambda pair: pair not in hypotheses.family):
        gains = rows_of(findings["gains"], **pair._asdict())
        if len(gains):
            title = pair_label(pair.compared, pair.reference)
            caption = f"{title}: change of the means in percent; bold: p < {SIGNIFICANT_P} (the paper's ANOVA)."
            finding = alternatives.site_by_site(gains, findings.single_run_metric)
            name = file_name(f"sites_{pair.compared}_against_{pair.reference}")
            arguments = (gains, samples.networks, _figure_metrics(findings), pair, samples.sites)
            yield ReportFigure(name, caption, sites_map.draw, arguments, finding)


def gains_by_site(findings: Findings, pair: Pair) -> ReportTable:
    """Each site's change of the means in each metric, for one pair."""
    data = rows_of(findings["gains"], **pair._asdict())
    by_site: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for row in records(data):
        by_site.setdefault((row["network"], row["site"]), {})[row["metric"]] = row
    rows = []
    for (network, site), by_metric in by_site.items():
        cells = [by_metric.get(metric, {"gain": math.nan, "p": math.nan}) for metric in findings.samples.metrics]
        texts = [percent(cell["gain"]) + ("*" if cell["p"] < SIGNIFICANT_P else "") for cell in cells]
        gains = dict(zip(map(label, findings.samples.metrics), texts, strict=True))
        rows.append({"network": label(network), "site": site, **gains, "runs": _runs_of_metrics(by_metric.values())})
    title = f"{pair_label(pair.compared, pair.reference)}, site by site"
    name = file_name(f"gains_{pair.compared}_against_{pair.reference}")
    return ReportTable(
        name, title, data, pd.DataFrame(rows), f"Change of the means; * p < {SIGNIFICANT_P} (the paper's one-way ANOVA)"
    )


def _runs_of_metrics(rows: Iterable[Mapping[str, Any]]) -> str:
    """The numbers of runs of both protocols: once if all metrics have the same, else for each group of metrics."""
    metrics: dict[str, list[str]] = {}
    for row in rows:
        metrics.setdefault(f"{row['runs_reference']}, {row['runs_compared']}", []).append(label(row["metric"]))
    if len(metrics) == 1:
        return next(iter(metrics))
    return "; ".join(f"{runs} ({listing(names)})" for runs, names in metrics.items())


def beside(findings: Findings) -> Section:
    """The section of the paper's numbers, side by side with the campaign's."""
    data, confidence = findings["paper"], level(findings.declared.confidence)
    caption = f"The paper's numbers beside this campaign's, with their {confidence} intervals over sites."
    finding = alternatives.beside_the_paper(data)
    figure = ReportFigure("beside_the_paper", caption, paper_beside.draw, (data,), finding)
    values = {"agreement": paper_agreement(findings)}
    tables = (beside_paper(findings),)
    return Section("beside", "Numbers of the paper", figures=(figure,), tables=tables, values=values, page=PAPER)


def paper_agreement(findings: Findings) -> str:
    """How many of the paper's numbers the campaign has, agrees with in sign, and repeats."""
    table = findings["paper"]
    available = table[table["ours"].notna()]
    signs, agrees = available["same_sign"], available["agrees"]
    return (
        f"This campaign has {len(available)} of the paper's {len(table)} numbers. {(signs == 'yes').sum()} of "
        f"{(signs != '').sum()} agree in sign. {(agrees == 'yes').sum()} of {(agrees != '').sum()} lie in the range "
        f"where {level(findings.declared.confidence)} of exact repetitions would, given the errors of both. The "
        "browser, the version of QUIC and the sites are not the paper's, so a difference is no error on either side."
    )


def beside_paper(findings: Findings) -> ReportTable:
    """The table of each of the paper's numbers with the campaign's."""
    forms = {"ratio": percent, "ms": signed_ms}

    def value(unit: str, *values: float) -> str:
        form = forms.get(unit, number)
        return " to ".join(map(form, values)) if math.isfinite(values[0]) else NOTHING

    def or_nothing(text: object) -> str:
        return str(text or NOTHING)

    columns = {
        "kind": ("number", lambda kind: kind.replace("_", " ")),
        "network": ("network", label),
        "compared": ("protocol", lambda name: label(name) or NOTHING),
        "reference": ("against", lambda name: label(name) or NOTHING),
        "site": ("site", lambda name: name or "all"),
        "metric": ("metric", lambda names: " ".join(map(label, names.split()))),
        "unit": ("unit", lambda unit: "" if unit == "ratio" else unit),
        ("unit", "value"): ("paper", value),
        ("unit", "ours"): ("here", value),
        ("unit", "ours_low", "ours_high"): (f"{level(findings.declared.confidence)} interval", value),
        "same_sign": ("same sign", or_nothing),
        "agrees": ("as a repetition", or_nothing),
        "chance": ("by chance", lambda chance: f"{100 * chance:.2g} %" if math.isfinite(chance) else NOTHING),
        "sites": ("sites here", or_nothing),
        ("missing", "note"): ("remark", lambda *remarks: "; ".join(filter(None, remarks))),
    }
    data = findings["paper"]
    return ReportTable("beside_the_paper", "The paper's numbers and this campaign's", data, text_table(data, columns))


def claims(findings: Findings) -> Section:
    """The section of the claims; the page leaves out those for which the campaign lacks a network or protocol."""
    data = findings["claims"]
    is_tested = data["p"].notna()
    balance = balance_of(data[is_tested], len(findings.campaign.valid), len(findings.samples.sites))
    if lacking := int((~is_tested).sum()):
        balance += f" {plural('further claim', lacking)} cannot be tested: the campaign lacks what they are about."
    table, *others = tables_of(findings, "claims", "claim_numbers", "metric_agreement")
    tables = (replace(table, texts=table.texts[is_tested.to_numpy()]), *others)
    return Section("claims", "Claims of the paper", tables=tables, values={"balance": balance}, page=PAPER)


def beyond(findings: Findings) -> Section:
    """The section of results that the paper does not have."""
    data, samples = findings["over_sites"], findings.samples
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    has_intervals = data["gain_low"].notna().any()
    if has_intervals:
        confidence = level(findings.declared.confidence)
        caption = f"Mean change over sites, by two methods, with {confidence} intervals that hold for sites like these."
        arguments = (data, samples.networks, _figure_metrics(findings), findings.hypotheses.comparisons)
        finding = alternatives.over_sites(data, findings.single_run_metric)
        figures = (ReportFigure("over_sites", caption, forest.draw, arguments, finding),)
    if len(findings["contrasts"]):
        over_sites = ("over_sites",) if has_intervals else ()
        names = ("other_metrics", "sensitivity", "heterogeneity", "shrunken", *over_sites, "web_metrics")
        tables = (*tables_of(findings, *names), verdict_counts(findings))
    if len(of_paints := paints(findings.campaign)):
        tables = (*tables, paint_table("largest_paints", of_paints))
    return Section("beyond", "Further methods", figures=figures, tables=tables, unfolded_figures=0, unfolded_rows=0)


def verdict_counts(findings: Findings) -> ReportTable:
    """The number of sites with each verdict, by pair, network and metric."""
    verdicts = findings["contrasts"].groupby(OVER_SITES, sort=False)["verdict"].value_counts()
    data = verdicts.unstack(fill_value=0).reindex(columns=VERDICTS, fill_value=0).reset_index()
    return report_table("site_verdicts", data, **declared_values(findings))


SECTION = CampaignSection("paper", place=20, of=sections)
