"""The first screen of a campaign's page: the question, how much of it is answered, and the caveats."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from analysis.figures import forest
from analysis.findings import Findings
from analysis.processor import DIFFERENT, has_warning
from analysis.report import alternatives
from analysis.report.level_ground import level_ground
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.sentences import equivalence_margin, headlines, warnings
from analysis.report.tables import declared_values, report_table, tables_of
from analysis.runs import rows_of
from analysis.statistics.confirmatory import CONFIRMATORY, confidences
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import EQUIVALENT, FASTER, SLOWER, VERDICTS
from analysis.statistics.samples import OVER_SITES
from analysis.stopping import looks_of
from analysis.text import label, label_with_title, level, listing, pair_label, percent, plural, share

# Notes of the verdicts' table: for a campaign that might have stopped earlier, and for one that did.
AT_ONCE = " Intervals hold at all looks at once."
SHRUNKEN = " Shrunken: the gain of what ended a network early, without what that selection adds on average."
# The note on a gain if waiting for a processor may explain it.
WAITED = (
    " * The loads of one protocol waited longer for a processor than those of the other, by more than half of this "
    "difference: it may be another on a machine with more cores."
)
# The share of runs that count although their first load was lost is mentioned only above this.
SHOWN_SHARE = 0.005
# From this share of lost runs on, the answer says how they could change it, even if no protocol lost more than
# the others.
LARGE_SHARE = 0.05


def sections(findings: Findings) -> list[Section]:
    """The section of the question and the answer."""
    section = Section(
        "summary",
        "Answer",
        figures=tuple(_figures(findings)),
        tables=(confirmatory(findings), *tables_of(findings, "success")),
        values={
            "question": question(findings),
            "answer": answer(findings),
            "success": success(findings["success_rates"]),
            "warnings": warnings(findings),
            "level_ground": level_ground(findings.campaign, findings.declared.family),
            "headlines": headlines(findings),
        },
    )
    return [section]


def question(findings: Findings) -> str:
    """The question of the declared hypotheses."""
    declared = findings.declared
    if not (declared.family and declared.family_metrics):
        return "Nothing: the campaign has no pair of protocols and no metric that a hypothesis was declared of."
    others: dict[str, list[str]] = {}
    for pair in declared.family:
        others.setdefault(label(pair.reference), []).append(label(pair.compared))
    pairs = [f"{listing(compared)} as fast as {reference}" for reference, compared in others.items()]
    metrics = [label_with_title(name) for name in declared.family_metrics]
    networks = [label(name) for name in findings.campaign.networks]
    tests = declared.family_size(len(findings.campaign.networks))
    # Hypotheses that were chosen after the results have no known error rate, since nobody knows how many there were to
    # choose from. Networks that were added later are a family of their own, with a level of its own.
    families = len({declared.added_networks.get(name) for name in findings.campaign.networks})
    error = f"{100 * families * declared.significant_p:g} %"
    promise = f"; the probability that any “faster” or “slower” among them is false is below {error}"
    if declared.origin.is_post_hoc:
        promise = ""
    return (
        f"Is {listing(pairs)}, by {listing(metrics)}, behind {listing(networks)}, on average over the sites? "
        f"{plural('contrast', tests)}{promise}."
    )


def answer(findings: Findings) -> list[str]:
    """The verdicts on the declared hypotheses: a sentence for each pair."""
    sentences = []
    for (reference, compared), rows in findings["confirmatory"].groupby(["reference", "compared"], sort=False):
        texts = []
        for verdict in VERDICTS:
            gains = rows.loc[rows["verdict"] == verdict, "gain"]
            if len(gains):
                count = f"all {len(rows)}" if 1 < len(rows) == len(gains) else f"{len(gains)} of {len(rows)}"
                measured = list(dict.fromkeys(percent(gain) for gain in sorted(gains.dropna())))
                ends = list(dict.fromkeys([*measured[:1], *measured[-1:]]))
                details = [" to ".join(ends)] if ends else []
                if verdict in (FASTER, SLOWER) and (small := within_margin(findings, rows_of(rows, verdict=verdict))):
                    details.append(f"{small} of these by less than counts as equivalent")
                texts.append(f"{verdict} in {count}" + (f" ({'; '.join(details)})" if details else ""))
        lost = of_losses(findings, Pair(str(reference), str(compared)))
        sentences.append(f"{pair_label(str(compared), str(reference))}: {', '.join(texts)}.{lost}")
    return sentences


def within_margin(findings: Findings, rows: pd.DataFrame) -> int:
    """How many of the contrasts in `rows` are shown to differ by less than the margin of equivalence."""
    return int((rows["equivalence_p_corrected"] < findings.declared.significant_p).sum())


def of_losses(findings: Findings, pair: Pair) -> str:
    """How the answer on `pair` would change with the lost runs, on the networks where one of its protocols lost many
    runs, or more runs than the others, or where a verdict depends on which runs were lost."""
    rates, bounds = findings["success_rates"], rows_of(findings["loss_bounds"], **pair._asdict())
    losers = rates[(rates["warning"] != "") | (rates["lost_share"] >= LARGE_SHARE)]
    shaken = bounds.loc[bounds["warning"] != "", "network"]
    clauses: list[str] = []
    for protocol, lost, end, direction in (
        (pair.compared, "lost_compared", "mean_gain_high", "up"),
        (pair.reference, "lost_reference", "mean_gain_low", "down"),
    ):
        networks = {*losers.loc[losers["protocol"] == protocol, "network"], *shaken}
        is_open = bounds["network"].isin(networks) & (bounds[lost] > 0)
        rows = bounds[is_open].dropna(subset=end)
        if rows.empty:
            continue
        place = f"{label(protocol)} lost behind {listing([label(name) for name in rows['network'].unique()])}"
        bound = f"{direction} to {percent(rows[end].max() if direction == 'up' else rows[end].min())}"
        if clauses:
            clauses.append(f"if those that {place} had, {bound}")
        else:
            longest = "had taken as long as a load may"
            clauses.append(f"if the runs that {place} {longest}, the difference of the means would be {bound}")
    return f" That is of the runs that count: {'; '.join(clauses)}." if clauses else ""


def success(rates: pd.DataFrame) -> str:
    """The share of each protocol's runs that count, from the table of `success_rates`."""
    texts = []
    for network, rows in rates.groupby("network", sort=False):
        shares = []
        for row in rows.to_dict("records"):
            again = row["lost_share"] - (1 - row["success"])
            lost = f" ({share(row['lost_share'])} lost at first)" if again > SHOWN_SHARE else ""
            shares.append(f"{label(row['protocol'])} {share(row['success'])}{lost}")
        texts.append(f"behind {label(str(network))} {listing(shares)}")
    return f"{'; '.join(texts)}."


def confirmatory(findings: Findings) -> ReportTable:
    """The table of the verdicts of the declared family."""
    data, margin = findings["confirmatory"], equivalence_margin(findings.declared, findings.campaign)
    is_shrunken = data["gain_shrunken"].notna().any()
    confidence = confidences(findings.declared, looks_of(findings.campaign), findings.samples.rounds)
    is_wide = (confidence > findings.declared.confidence).any()
    stopping = (AT_ONCE if is_wide else "") + (SHRUNKEN if is_shrunken else "")
    values = {"tests": len(data), "margin": margin, "stopping": stopping, **declared_values(findings)}
    table = report_table("confirmatory", data, **values)
    texts = table.texts if is_shrunken else table.texts.drop(columns="shrunken")
    is_small = (data["equivalence_p_corrected"] < findings.declared.significant_p) & data["verdict"].ne(EQUIVALENT)
    texts = texts.assign(verdict=data["verdict"].mask(is_small, data["verdict"].map("{}, within the margin".format)))
    waits = findings["processor_waits"]
    is_marked = pd.MultiIndex.from_frame(data[OVER_SITES]).isin(
        pd.MultiIndex.from_frame(waits.loc[has_warning(waits, DIFFERENT), OVER_SITES])
    )
    texts = texts.assign(gain=texts["gain"].mask(is_marked, texts["gain"].map("{}*".format)))
    note = table.note + (WAITED if is_marked.any() else "")
    return replace(table, data=data[CONFIRMATORY], texts=texts, note=note)


def _figures(findings: Findings) -> Iterator[ReportFigure]:
    """A figure of the verdicts for each metric."""
    if not findings["confirmatory"]["blocks"].any():
        return
    for metric in findings.declared.family_metrics:
        rows = rows_of(findings["confirmatory"], metric=metric)
        caption = f"Gain in {label(metric)} over the sites of this campaign, " + (
            f"with its {level(findings.declared.confidence)} interval."
            if rows["gain_low"].notna().any()
            else "without an interval: there are too few blocks."
        )
        arguments = (rows, findings.campaign.networks, metric, findings.declared.family)
        yield ReportFigure(
            f"confirmatory_{metric}", caption, forest.draw_confirmatory, arguments, alternatives.family(rows)
        )


SECTION = CampaignSection("summary", place=0, of=sections)
