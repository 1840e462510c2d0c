"""The first screen of a campaign's page: the question, how much of it is answered, and the caveats."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.balance import place_test
from analysis.figures import forest
from analysis.findings import Findings
from analysis.losses import LONGER, MORE
from analysis.processor import DIFFERENT
from analysis.report import alternatives
from analysis.report.level_ground import level_ground
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.sentences import equivalence_margin, headlines, warnings
from analysis.report.tables import declared_values, report_table, tables_of
from analysis.report.verdicts import WORDS, beside, marked, sizes, verdict_table
from analysis.report.warnings import REJECTED
from analysis.runs import records, rows_of
from analysis.statistics.confirmatory import CONFIRMATORY, confidences
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import FASTER, NOT_DECIDED, SLOWER, WARNING_P
from analysis.statistics.samples import OVER_SITES
from analysis.stopping import looks_of
from analysis.text import label, label_with_title, level, listing, pair_label, percent, plural, share
from dataset.gates import LOAD, PAGE

# Notes of the verdicts' table: for a campaign that might have stopped earlier, and for one that did.
AT_ONCE = " Intervals hold at all looks at once."
SHRUNKEN = " Shrunken: the gain of what ended a network early, without what that selection adds on average."
# The note on a gain if waiting for a processor may explain it.
WAITED = (
    " * The loads of one protocol waited longer for a processor than those of the other, by more than half of this "
    "difference: it may be another on a machine with more cores."
)
# The note on a margin that the plan could not have shown.
OUT_OF_REACH = " † So many blocks, with this scatter, would not even have shown that a gain of 0 is equivalent."
# The answer names a cause that can explain a larger share of a difference than this.
EXPLAINED = 0.5
# The share of runs that count although their first load was lost is mentioned only above this.
SHOWN_SHARE = 0.005
# From this share of lost runs on, they are named, and the answer says how they could change it, even if no protocol
# lost more than the others.
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
            "success": success(findings["success_rates"], findings["loss_bounds"]),
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
    error = f"{100 * declared.significant_p:g} %"
    each = f" in each of {families} families (the declared one, and what was added each time)" if families > 1 else ""
    promise = f"; the probability that any “faster” or “slower” among them is false by chance is below {error}{each}"
    if declared.origin.is_post_hoc:
        promise = ""
    return (
        f"Is {listing(pairs)}, by {listing(metrics)}, on {listing(networks)}, averaged over the sites? "
        f"{plural('contrast', tests)}{promise}."
    )


def answer(findings: Findings) -> list[str]:
    """The verdicts on the declared hypotheses, and what stands beside them (`analysis.report.verdicts`): a text for
    each pair."""
    texts = []
    for (reference, compared), rows in verdict_table(findings).groupby(["reference", "compared"], sort=False):
        verdicts = []
        for word in WORDS:
            group = rows_of(rows, word=word)
            if len(group):
                count = f"all {len(rows)}" if 1 < len(rows) == len(group) else f"{len(group)} of {len(rows)}"
                measured = sizes(group)
                verdicts.append(f"{word} in {count}" + (f" ({measured})" if measured else ""))
        pair = Pair(str(reference), str(compared))
        asides = of_losses(findings, pair) + of_rejections(findings, pair) + of_doubts(findings, pair)
        first = f"{pair_label(pair.compared, pair.reference)}: {', '.join(verdicts)}.{asides}"
        texts.append(" ".join([first, *beside(findings, pair)]))
    return texts


def of_losses(findings: Findings, pair: Pair) -> str:
    """The shares of loads that the protocols of `pair` lost, whether they differ, and how far these losses could move
    the gains: on the networks where one of them lost many loads or more than the others, where they differ, or where a
    verdict rests on the losses."""
    rates, bounds = findings["success_rates"], rows_of(findings["loss_bounds"], **pair._asdict())
    rates = rates[rates["protocol"].isin(pair)]
    losers = rates[(rates["warning"] != "") | (rates["lost_share"] >= LARGE_SHARE)]
    is_unequal = bounds["lost_p_corrected"] < WARNING_P
    networks = {*losers["network"], *bounds.loc[is_unequal | (bounds["warning"] != ""), "network"]}
    lost = bounds["lost_reference"] + bounds["lost_compared"]
    rows = bounds[bounds["network"].isin(networks) & (lost > 0)].dropna(subset=["gain_low", "gain_high"])
    if rows.empty:
        return ""
    shares = rates.set_index(["network", "protocol"])["lost_share"]
    unequal = set(bounds.loc[is_unequal, "network"])
    places = [
        f"on {label(network)} {label(pair.compared)} {share(shares[network, pair.compared])} and "
        f"{label(pair.reference)} {share(shares[network, pair.reference])} "
        f"({'shown to differ' if network in unequal else 'no difference shown'})"
        for network in rows["network"].unique()
    ]
    empty = findings["empty_settings"]
    empty = empty[empty["network"].isin(rows["network"]) & empty["protocol"].isin(pair) & (empty["tried"] > 0)]
    never = dict.fromkeys(f"{row['site']} never loaded over {label(row['protocol'])}" for row in records(empty))
    interval = f"{percent(rows['gain_low'].min())} and {percent(rows['gain_high'].max())}"
    tests = findings["rejections"]
    failed = tests[tests["kind"].isin([LOAD, PAGE]) & tests["network"].isin(rows["network"])]
    is_slow = failed["warning"].str.contains(LONGER).any()
    beyond = " Loads that failed took longer than those that count, so the truth may lie beyond." if is_slow else ""
    return (
        f" Lost loads: {'; '.join([*places, *never])}. If each had taken as long as the slowest load of its page that "
        f"counts, or as short as the fastest, the gains would lie between {interval}.{beyond}"
    )


def of_rejections(findings: Findings, pair: Pair) -> str:
    """On which networks the decided verdicts on `pair` rest on which loads were rejected. `of_losses` says so for lost
    loads, since their bounds are known."""
    verdicts, tests = rows_of(findings["confirmatory"], **pair._asdict()), findings["rejections"]
    decided = verdicts.loc[verdicts["verdict"] != NOT_DECIDED, "network"]
    tests = tests[tests["network"].isin(decided) & ~tests["kind"].isin([LOAD, PAGE])]
    is_of_pair = tests["protocols"].str.split(", ").map(lambda names: not {*names}.isdisjoint(pair)).astype(bool)
    rows = tests[(tests["warning"].str.contains(MORE) & is_of_pair) | tests["warning"].str.contains(LONGER)]
    if rows.empty:
        return ""
    places = listing([label(name) for name in rows["network"].unique()])
    why = listing([REJECTED[kind] for kind in rows["kind"].unique()])
    return f" On {places}, the verdicts rest on which loads were rejected {why}."


def of_doubts(findings: Findings, pair: Pair) -> str:
    """Other causes than the protocols of `pair` for a difference between them: the order of measuring, the load before,
    or waiting for a processor, if it can explain half of a difference."""
    verdicts = rows_of(findings["confirmatory"], **pair._asdict())
    differences = verdicts[verdicts["verdict"].isin((FASTER, SLOWER))]
    if differences.empty:
        return ""
    places = place_test(findings.campaign)
    is_ordered = places.is_ordered and places.effect > EXPLAINED
    causes = ["they were not measured in random order"] if is_ordered else []
    carried = differences.merge(findings["carry_over"], on=["network", "metric"], suffixes=("", "_carried"))
    carried = carried[(carried["warning"] != "") & (carried["ratio_off"] > EXPLAINED * carried["gain"].abs())]
    if len(carried):
        causes.append(f"the load before each can explain up to {share(carried['ratio_off'].max())}")
    waits = differences[OVER_SITES].merge(findings["processor_waits"], on=OVER_SITES)
    waits = waits[waits["warning"].astype(str).str.contains(DIFFERENT)]
    # A load that is longer also waits longer in all. A cause of its length is only what grows more than that.
    ratio, gain = ((waits["wait_compared"] / waits["wait_reference"]).astype(float), waits["gain"].astype(float))
    growth = np.log(ratio) / np.log1p(gain)
    waits = waits[EXPLAINED * growth > 1]
    if len(waits):
        slower = pair.compared if waits["gain"].median() > 0 else pair.reference
        causes.append(f"{label(slower)}'s loads waited longer for a processor, which can explain half of it or more")
    return f" This may not be due to the protocols: {'; '.join(causes)}." if causes else ""


def success(rates: pd.DataFrame, bounds: pd.DataFrame) -> str:
    """The shares of runs that count, from the tables of `success_rates` and `bounds`: of the protocols that lost many
    loads, of pairs that lost loads unequally, and the smallest share of all others."""
    unequal = bounds[bounds["lost_p_corrected"] < WARNING_P]
    pairs = {(row["network"], row[side]) for row in records(unequal) for side in Pair._fields}
    is_low = (rates["success"] < 1 - LARGE_SHARE) | (rates["lost_share"] > LARGE_SHARE)
    is_named = is_low | pd.MultiIndex.from_frame(rates[["network", "protocol"]]).isin(list(pairs))
    texts = []
    for network, rows in rates[is_named].groupby("network", sort=False):
        shares = []
        for row in records(rows):
            again = row["lost_share"] - (1 - row["success"])
            lost = f" ({share(row['lost_share'])} lost at first)" if again > SHOWN_SHARE else ""
            shares.append(f"{label(row['protocol'])} {share(row['success'])}{lost}")
        texts.append(f"on {label(str(network))} {listing(shares)}")
    if np.isfinite(least := rates.loc[~is_named, "success"].min()):
        at_least = share(least) if least == 1 else f"at least {share(least)}"
        texts.append(f"{at_least} {'elsewhere' if texts else 'over all protocols on all networks'}")
    return f"{'; '.join(texts)}."


def confirmatory(findings: Findings) -> ReportTable:
    """The table of the verdicts of the declared family."""
    data, margin = verdict_table(findings), equivalence_margin(findings.declared, findings.campaign)
    is_shrunken = data["gain_shrunken"].notna().any()
    confidence = confidences(findings.declared, looks_of(findings.campaign), findings.samples.rounds)
    is_wide = (confidence > findings.declared.confidence).any()
    stopping = (AT_ONCE if is_wide else "") + (SHRUNKEN if is_shrunken else "")
    values = {"tests": len(data), "margin": margin, "stopping": stopping, **declared_values(findings)}
    table = report_table("confirmatory", data, **values)
    texts = table.texts if is_shrunken else table.texts.drop(columns="shrunken")
    texts = texts.assign(verdict=[marked(findings, row) for row in records(data)])
    waits = findings["processor_waits"]
    is_marked = pd.MultiIndex.from_frame(data[OVER_SITES]).isin(
        pd.MultiIndex.from_frame(waits.loc[waits["warning"].astype(str).str.contains(DIFFERENT), OVER_SITES])
    )
    texts = texts.assign(gain=texts["gain"].mask(is_marked, texts["gain"].map("{}*".format)))
    is_out_of_reach = data["verdict"].eq(NOT_DECIDED) & data["blocks"].gt(0) & ~data["is_in_reach"]
    margins = texts["equivalent within"]
    texts = texts.assign(**{"equivalent within": margins.mask(is_out_of_reach, margins.map("{}†".format))})
    note = table.note + (WAITED if is_marked.any() else "") + (OUT_OF_REACH if is_out_of_reach.any() else "")
    return replace(table, data=data[CONFIRMATORY], texts=texts, note=note)


def _figures(findings: Findings) -> Iterator[ReportFigure]:
    """A figure of the verdicts for each metric."""
    if not findings["confirmatory"]["blocks"].any():
        return
    for metric in findings.declared.family_metrics:
        rows = rows_of(verdict_table(findings), metric=metric)
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
