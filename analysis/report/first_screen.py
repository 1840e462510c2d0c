"""The first screen of a report: a line for each declared comparison, what qualifies the answer, and the runs that would
decide what is open."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.answer import MOST_RUNS, level_at_end, more_runs
from analysis.balance import place_test
from analysis.figures.style import in_paper_order
from analysis.findings import Findings
from analysis.losses import LONGER, MORE
from analysis.processor import DIFFERENT
from analysis.report.lines import Line
from analysis.report.page import VERDICT_CLASSES
from analysis.report.sentences import HEADLINE, headline_rows
from analysis.report.variants import of_variants
from analysis.report.verdicts import AMONG, NOT_BY_PAGE, WORDS, beside, marked, slow_loads, verdict_table
from analysis.report.warnings import REJECTED
from analysis.runs import records, rows_of
from analysis.statistics.confirmatory import confidences
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, EQUIVALENT, FASTER, NOT_DECIDED, SLOWER, WARNING_P
from analysis.statistics.planning import NEEDED
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import OVER_SITES
from analysis.stopping import looks_of
from analysis.text import (
    label,
    label_with_title,
    listing,
    pair_label,
    percent,
    plural,
    share,
    span,
)
from dataset.gates import LOAD, PAGE

# The answer names a cause that can explain a larger share of a difference than this.
EXPLAINED = 0.5
# The share of runs that count although their first load was lost is mentioned only above this.
SHOWN_SHARE = 0.005
# From this share of lost runs on, they are named, and the answer says how they could change it, even if no protocol
# lost more than the others.
LARGE_SHARE = 0.05
# The change that further runs are to show.
TO_SHOW = 0.05
# The words of the first sentence, by verdict: of the headline, and of any other metric.
SHOWN = {FASTER: "sooner than {}", SLOWER: "later than {}", EQUIVALENT: "about as soon as {}"}
COMPARED = {FASTER: "faster than {}", SLOWER: "slower than {}", EQUIVALENT: "about as fast as {}"}
CONTRADICTED = "Slow loads contradict this."
NONE_DECLARED = (
    "Nothing is compared: the campaign has no pair of protocols and no metric for which a hypothesis was declared."
)


def lines(findings: Findings) -> list[Line]:
    """The lines of all declared comparisons, the headline's metric first, by network in the paper's order."""
    metrics = sorted(findings.declared.family_metrics, key=lambda name: name != HEADLINE)
    table = verdict_table(findings)
    networks = in_paper_order(table["network"].unique())
    order = table["metric"].map(metrics.index) * len(networks) + table["network"].map(networks.index)
    return [
        Line(
            row["metric"],
            row["network"],
            pair_label(row["compared"], row["reference"]),
            VERDICT_CLASSES[row["verdict"]],
            marked(findings, row),
            *(row[name] for name in ("gain", "gain_low", "gain_high", "margin")),
        )
        for row in records(table.iloc[order.argsort(kind="stable")])
    ]


def question(findings: Findings) -> str:
    """The question of the declared hypotheses, and how often its answer is wrong."""
    declared = findings.declared
    if not (declared.family and declared.family_metrics):
        return NONE_DECLARED
    others: dict[str, list[str]] = {}
    for pair in declared.family:
        others.setdefault(label(pair.reference), []).append(label(pair.compared))
    pairs = [f"{listing(compared)} as fast as {reference}" for reference, compared in others.items()]
    metrics = [label_with_title(name) for name in declared.family_metrics]
    networks = [label(name) for name in in_paper_order(findings.campaign.networks)]
    tests = declared.family_size(len(findings.campaign.networks))
    # Hypotheses that were chosen after the results have no known error rate, since nobody knows how many there were to
    # choose from. Networks that were added later are a family of their own, with a level of its own.
    families = len({declared.added_networks.get(name) for name in findings.campaign.networks})
    error = f"{100 * declared.significant_p:g} %"
    each = f" in each of {families} families (the declared one, and what was added each time)" if families > 1 else ""
    promise = f" The probability that any “faster” or “slower” among them is false by chance is at most {error}{each}."
    if declared.origin.is_post_hoc:
        promise = ""
    return (
        f"Is {listing(pairs)}, by {listing(metrics)}, on {listing(networks)}, averaged over the sites? "
        f"{'This is' if tests == 1 else 'These are'} {plural('comparison', tests)}.{promise}"
    )


def sentences(findings: Findings) -> list[str]:
    """The answer in the headline's metric: a sentence for each variant of a site, and for each declared pair."""
    groups: dict[Pair, list[dict[str, Any]]] = {}
    for row in records(headline_rows(findings)):
        groups.setdefault(Pair(row["reference"], row["compared"]), []).append(row)
    texts = []
    for pair, rows in groups.items():
        text = sentence(findings, pair, rows)
        if doubts(findings, pair):
            text += " This may not be due to the protocols."
        if any(slow_loads(findings, row) for row in rows):
            text += f" {CONTRADICTED}"
        texts.append(text)
    return [*of_variants(findings), *(texts or [NONE_DECLARED])]


def sentence(findings: Findings, pair: Pair, rows: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts on one pair: the `rows` of `verdict_table` in one metric."""
    sites, metric = findings.samples.sites, rows[0]["metric"]
    # A page that was withdrawn on a network, or never loaded over a protocol, is in no mean there.
    numbers = [int(row["sites"]) for row in rows if row["blocks"]] or [len(sites)]
    pages = sites[0] if len(sites) == 1 else f"these {span(min(numbers), max(numbers))} pages"
    reference, is_headline = label(pair.reference), metric == HEADLINE
    verb, forms = (f"shows {pages}", SHOWN) if is_headline else ("is", COMPARED)
    verb = f"{label(pair.compared)} {verb}"
    # Verdict → where it holds; the networks where loads were lost unequally come last.
    places: dict[str, list[str]] = {}
    for word in WORDS:
        if networks := in_paper_order(row["network"] for row in rows if row["word"] == word):
            among = AMONG.lstrip() + " " if word.endswith(AMONG) else ""
            where = f"{among}on {listing([label(name) for name in networks])}"
            places.setdefault(word.removesuffix(AMONG), []).append(where)
    is_open = "".join(places.pop(NOT_DECIDED, []))
    decided = [f"{_compared(verdict, forms, reference)} {' and '.join(where)}" for verdict, where in places.items()]
    opening = "On average, " if pages.endswith("pages") else ""
    opening += "" if is_headline else f"by {label(metric)}, "
    if decided:
        text = f"{opening}{verb} {', '.join(decided)}" + (f"; not decided {is_open}." if is_open else ".")
    else:
        text = f"{opening}it is not decided whether {verb} {_compared(FASTER, forms, reference)} {is_open}."
    return text[:1].upper() + text[1:]


def _compared(verdict: str, forms: Mapping[str, str], reference: str) -> str:
    how = {EQUAL_ON_AVERAGE: ", but perhaps not page by page,", NOT_BY_PAGE: ", but not page by page,"}.get(verdict, "")
    return f"{forms[EQUIVALENT if how else verdict].format(reference)}{how}"


def qualifications(findings: Findings) -> list[str]:
    """The qualifications of the answer, each as a warning (`analysis.report.warnings`): causes other than the
    protocols, loads that were lost or rejected, and what contradicts the verdicts (`analysis.report.verdicts`)."""
    verdicts = verdict_table(findings)
    pairs = list(dict.fromkeys(Pair(*names) for names in verdicts[[*Pair._fields]].to_numpy()))
    by_title: dict[str, dict[str, str]] = {}
    for pair in pairs:
        of_pair = {**doubts(findings, pair), **_losses(findings, pair), **_rejections(findings, pair)}
        for title, details in (of_pair | beside(findings, verdicts, pair)).items():
            by_title.setdefault(title, {})[pair_label(pair.compared, pair.reference)] = details
    texts = []
    for title, details_of in by_title.items():
        if len(pairs) == 1:
            (details,) = details_of.values()
            texts.append(f"{title}. {details[:1].upper()}{details[1:]}.")
        else:
            names = "" if len(details_of) == len(pairs) else f": {listing(list(details_of))}"
            details = " ".join(f"{pair}: {details}." for pair, details in details_of.items())
            texts.append(f"{title}{names}. {details}")
    return texts


def _losses(findings: Findings, pair: Pair) -> dict[str, str]:
    """The shares of loads that the protocols of `pair` lost, whether they differ, and how far these losses could move
    the changes: on the networks where one of them lost many loads or more than the others, where they differ, or where
    a verdict rests on the losses."""
    rates, bounds = findings["success_rates"], rows_of(findings["loss_bounds"], **pair._asdict())
    rates = rates[rates["protocol"].isin(pair)]
    losers = rates[(rates["warning"] != "") | (rates["lost_share"] >= LARGE_SHARE)]
    is_unequal = bounds["lost_p_corrected"] < WARNING_P
    networks = {*losers["network"], *bounds.loc[is_unequal | (bounds["warning"] != ""), "network"]}
    lost = bounds["lost_reference"] + bounds["lost_compared"]
    rows = bounds[bounds["network"].isin(networks) & (lost > 0)].dropna(subset=["gain_low", "gain_high"])
    if rows.empty:
        return {}
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
    beyond = ". Loads that failed took longer than those that count, so the truth may lie beyond" if is_slow else ""
    details = (
        f"{'; '.join([*places, *never])}. If each had taken as long as the slowest load of its page that counts, or as "
        f"short as the fastest, the changes would lie between {interval}{beyond}"
    )
    return {"Loads were lost, and the answer is about the others": details}


def _rejections(findings: Findings, pair: Pair) -> dict[str, str]:
    """On which networks the decided verdicts on `pair` rest on which loads were rejected. `_losses` says so for lost
    loads, since their bounds are known."""
    verdicts, tests = rows_of(findings["confirmatory"], **pair._asdict()), findings["rejections"]
    decided = verdicts.loc[verdicts["verdict"] != NOT_DECIDED, "network"]
    tests = tests[tests["network"].isin(decided) & ~tests["kind"].isin([LOAD, PAGE])]
    is_of_pair = tests["protocols"].str.split(", ").map(lambda names: not {*names}.isdisjoint(pair)).astype(bool)
    rows = tests[(tests["warning"].str.contains(MORE) & is_of_pair) | tests["warning"].str.contains(LONGER)]
    if rows.empty:
        return {}
    places = listing([label(name) for name in rows["network"].unique()])
    why = listing([REJECTED[kind] for kind in rows["kind"].unique()])
    return {f"Verdicts rest on which loads were rejected {why}": f"the networks are {places}"}


def doubts(findings: Findings, pair: Pair) -> dict[str, str]:
    """Other causes than the protocols of `pair` for a difference between them: the order of measuring, the load before,
    or waiting for a processor, if it can explain half of a difference."""
    verdicts = rows_of(findings["confirmatory"], **pair._asdict())
    differences = verdicts[verdicts["verdict"].isin((FASTER, SLOWER))]
    if differences.empty:
        return {}
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
        causes.append(f"{label(slower)}'s loads waited longer for a processor")
    return {"Another cause can explain half of a difference or more": "; ".join(causes)} if causes else {}


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


def has_wide_intervals(findings: Findings) -> bool:
    """Whether the intervals of the declared comparisons hold at all looks at once, and so are wider than usual."""
    confidence = confidences(findings.declared, looks_of(findings.campaign), findings.samples.rounds)
    return bool((confidence > findings.declared.confidence).any())


def deciding(findings: Findings) -> list[str]:
    """How many more runs would decide what is open, in a sentence for each network."""
    is_open = findings["confirmatory"]["verdict"].eq(NOT_DECIDED) & findings["confirmatory"]["blocks"].gt(0)
    needed: dict[str, list[tuple[float, float]]] = {}
    for row in records(findings["confirmatory"][is_open]):
        (planned,) = rows_of(findings["power"], **{name: row[name] for name in OVER_SITES})[NEEDED[TO_SHOW]]
        needed.setdefault(row["network"], []).append((further_runs(findings, row, TO_SHOW), planned))
    return [_what_decides(name, *zip(*needed[name], strict=True)) for name in in_paper_order(needed)]


def further_runs(findings: Findings, row: Mapping[str, Any], change: float | None = None) -> float:
    """How many further runs of each setting would probably decide the contrast of `row` if the true change is `change`,
    in the measured direction, or the measured one; inf for more than MOST_RUNS, NaN if the scatter of the runs is
    unknown."""
    declared, campaign, samples = findings.declared, findings.campaign, findings.samples.on([row["network"]])
    ratios = block_ratios(samples, Pair(row["reference"], row["compared"]))
    ratio = mean_over_sites(ratios[0, :, samples.metrics.index(row["metric"])])
    size = declared.family_size(len(declared.declared_with(row["network"], campaign.networks)))
    blocks = math.ceil(row["blocks"] / row["sites"])
    level_of = partial(level_at_end, campaign, declared.significant_p / size, blocks)
    return more_runs(math.expm1(abs(float(ratio.centre))) if change is None else change, ratio, blocks, level_of)


def _what_decides(network: str, more: Sequence[float], planned: Sequence[float]) -> str:
    if not any(map(math.isfinite, planned)):
        return f"On {label(network)}, the runs are too few to say how many more would decide."
    each = "runs of each page and protocol"
    return f"On {label(network)}, {_runs(more)} more {each}, or {_runs(planned)} in a new campaign."


def _runs(numbers: Sequence[float]) -> str:
    known = [number for number in numbers if not math.isnan(number)]
    ends = [f"{number:.0f}" if math.isfinite(number) else f"over {MOST_RUNS}" for number in (min(known), max(known))]
    return span(*ends)
