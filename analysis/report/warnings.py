"""Warnings: what a reader must know before trusting results, from the tables of a campaign's analyses.

A warning is about one thing. Its first sentence says what it is, in few words, and stands alone on a page; the others
are details, which are folded below it (`titled`).
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.attempts import SETTING
from analysis.balance import APART, FAR, FAULTS, INCOMPLETE, SINGLE, UNKNOWN, PlaceTest
from analysis.losses import LONGER, MORE
from analysis.processor import (
    BUSY,
    BUSY_SHARE,
    DIFFERENT,
    MOST_WAITING,
    WITHOUT_UWSGI,
    possible_waits,
    wait_shares,
)
from analysis.runs import CONCURRENT_LOADS, LANE, MACHINE, CampaignTable, records
from analysis.stability import ALIKE, BATCHES, DRIFTS, RATIO, SITTINGS
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import FASTER, SLOWER
from analysis.text import label, level, listing, p_value, pair_label, percent, percent_interval, plural, share, span
from dataset.declaration import declaration_of
from dataset.gates import FILM, LOAD, PAGE
from dataset.gates import MACHINE as OF_MACHINE
from dataset.table import PROCESSOR_WAIT, WITHDRAWN, Cell, read_given_up

POST_HOC = "The hypotheses are post hoc: none was declared before the first run. No error rate holds for the answer."
# With fewer sites, no site counts as far from the others.
LEAST_COMPARED = 5
# The sites of the smaller group, of faster or of slower sites, are exceptions if it has less than this share of both.
LARGE_MINORITY = 0.1
# The warning for each fault of a pair's balance.
BALANCE = {
    APART: "Protocols were compared at different times",
    INCOMPLETE: "Blocks are incomplete",
    FAR: "Protocols were not measured together",
    UNKNOWN: "It is unknown whether protocols were measured together",
    SINGLE: "Means are over different sites",
}
# On at most this many cores, the programs of a load share cores.
FEW_CORES = 2
# Why loads of each kind of rejection (`dataset.gates.KINDS`) were rejected.
REJECTED = {
    LOAD: "because they failed",
    PAGE: "because their page was another one than usual",
    FILM: "for their film",
    OF_MACHINE: "for the machine",
    WITHDRAWN: "for a reason that was withdrawn",
}


def titled(warning: str) -> tuple[str, str]:
    """The first sentence of a warning, and the others."""
    title, _, details = warning.partition(". ")
    return (f"{title}.", details) if details else (title, "")


def of_deviations(campaign: CampaignTable, hypotheses: Hypotheses, rates: pd.DataFrame) -> list[str]:
    """How a campaign deviates from what it declared before its first run, and the consequences for its verdicts.

    `hypotheses` are those on the campaign; `rates` is `losses.success_rates`. Hypotheses that the campaign did not
    declare are post hoc as a whole. Raises EyelevelError.
    """
    declared = declaration_of(campaign.document, campaign.folder)
    if hypotheses.origin.is_post_hoc:
        texts = [POST_HOC]
    else:
        alone = "of their own, corrected alone"
        texts = [
            f"{names} {'was' if len(added) == 1 else 'were'} added after the first run. {consequence}."
            for added, write, consequence in (
                (declared.sites, str, "Means over sites include what was added, although it was not declared"),
                (declared.networks, label, f"The contrasts of an added network are a family {alone}"),
                (declared.further_browsers, label, f"The contrasts of an added browser are a family {alone}"),
                (declared.protocols, label, "No comparison with an added protocol is among the declared hypotheses"),
            )
            if (names := _some_names([write(name) for name in added]))
        ]
    if len(declared.runs) > 1:
        texts.append(
            f"The number of runs was raised after the first run: {' to '.join(map(str, declared.runs))}. The verdicts "
            "and intervals of the declared hypotheses allow for it: each of these numbers spends its own part of the "
            "error. All other p values and intervals do not."
        )
    if (missing := runs_missing(campaign, rates)) > 0:
        texts.append(
            f"The campaign is not over: {runs_tried(campaign)} of {campaign.settings.runs} declared runs of each "
            f"setting were tried. {plural('planned run', missing)} {'was' if missing == 1 else 'were'} not. Verdicts "
            "hold also if it ends here: there is a look after fixed numbers of runs, and each spends its part of the "
            "error."
        )
    return texts


def runs_missing(campaign: CampaignTable, rates: pd.DataFrame) -> int:
    """How many planned runs were never tried, in a campaign with a fixed number of runs; without the runs of sites that
    were given up or withdrawn. `rates` is `losses.success_rates`, which leaves out the withdrawn ones."""
    given_up = sum(entry.runs for entry in read_given_up(campaign.folder) if entry.withdrawn is None)
    return int((rates["planned"] - rates["tried"]).fillna(0).sum()) - given_up


def runs_tried(campaign: CampaignTable) -> str:
    """How many runs of each setting were tried: 3, or 2 to 3. Settings that have none or were given up do not count."""
    numbers, given_up = campaign.runs.groupby(SETTING)["run"].nunique(), campaign.given_up
    goes_on = [(site, network) not in given_up for network, site, _ in numbers.index]
    numbers = numbers[goes_on] if any(goes_on) else numbers
    return span(int(numbers.min()), int(numbers.max()))


def _some_names(names: Sequence[str]) -> str:
    """The first five of `names`, and how many more there are; empty if there are no names."""
    more = [f"{len(names) - 5} more"] if len(names) > 5 else []
    return listing([*names[:5], *more]) if names else ""


def of_losses(
    rates: pd.DataFrame, empty: pd.DataFrame, bounds: pd.DataFrame, given_up: Collection[Cell] = ()
) -> list[str]:
    """Warnings about the losses, from the tables of `success_rates`, `empty_settings` and `bounds`. Settings that have
    no valid run because they are `given_up` have a warning of their own, so none here."""
    texts = []
    empty = empty[~pd.MultiIndex.from_frame(empty[["site", "network"]]).isin(list(given_up))]
    for is_tried, text in ((True, "no valid run"), (False, "not been tried")):
        networks_of: dict[tuple[str, ...], list[str]] = {}
        for network, group in empty[(empty["tried"] > 0) == is_tried].groupby("network", sort=False):
            names = tuple(f"{row['site']} over {label(row['protocol'])}" for row in records(group))
            networks_of.setdefault(names, []).append(label(str(network)))
        for names, networks in networks_of.items():
            settings = f"{plural('setting', len(names))} {'has' if len(names) == 1 else 'have'}"
            texts.append(f"On {listing(networks)}, {settings} {text}: {_some_names(names)}.")
    for protocol, rows in rates[rates["warning"] != ""].groupby("protocol", sort=False):
        where = [
            f"{share(row['lost_share'])} on {label(row['network'])} ({row['lost']} of {row['tried']} runs, others "
            f"{share(row['others_share'])})"
            for row in records(rows)
        ]
        texts.append(
            f"{label(str(protocol))} lost more loads than the others. Lost were {listing(where)}. If slow loads are "
            "those that were lost, the runs that are left make it look better than it is."
        )
    if resting := [text for text in bounds["warning"] if text]:
        number = len(resting)
        texts.append(f"{plural('verdict', number)} {'rests' if number == 1 else 'rest'} on which runs were lost.")
        texts[-1] = " ".join([texts[-1], *resting])
    return texts


def of_rejections(tests: pd.DataFrame, rates: pd.DataFrame) -> list[str]:
    """Warnings about rejections that may favour a protocol, from the tables of `rejection_tests` and `success_rates`.
    Protocols that lost more loads than the others have a warning of their own (`of_losses`), so none here."""
    losers = set(zip(rates["network"], rates["protocol"], rates["warning"] != "", strict=True))
    texts = []
    for kind, rows in tests.groupby("kind", sort=False):
        for protocols, some in rows[rows["warning"].str.contains(MORE)].groupby("protocols", sort=False):
            names = str(protocols).split(", ")
            where = [
                f"{share(row['share'])} on {label(row['network'])} (others {share(row['others_share'])})"
                for row in records(some)
                if kind not in (LOAD, PAGE) or not {(row["network"], name, True) for name in names} <= losers
            ]
            if where:
                texts.append(
                    f"More runs over {listing([label(name) for name in names])} than over the others had a load that "
                    f"was rejected {REJECTED[str(kind)]}. Such runs were {listing(where)}. If slow loads are those "
                    "that were rejected, the loads that count make it look better than it is."
                )
        if len(some := rows[rows["warning"].str.contains(LONGER)]):
            ends = some["longer_share"]
            texts.append(
                f"On {listing([label(name) for name in some['network']])}, loads that were rejected "
                f"{REJECTED[str(kind)]} took longer than those of their setting that count. They did in "
                f"{span(share(ends.min()), share(ends.max()))} of the comparisons (50 % by chance), so slow loads are "
                "missing from the results."
            )
    return texts


def of_missing_times(table: pd.DataFrame) -> list[str]:
    """Warnings for each metric of the table of `missing_times` (`analysis.samples`)."""
    texts = []
    for (metric, is_left_out), rows in table.groupby(["metric", "is_left_out"], sort=False):
        name = label(str(metric))
        where = [
            f"{share(row['missing'] / row['loads'])} of {label(row['protocol'])}'s on {label(row['network'])} "
            f"({row['missing']} of {row['loads']})"
            for row in records(rows)
        ]
        consequence = (
            f"The loads that have it may be unlike those that lack it: there is no verdict on {name} there."
            if is_left_out
            else f"Verdicts on {name} there rest on the other loads alone."
        )
        texts.append(f"{name} is 0 or missing in loads that count. It is in {_some_names(where)}. {consequence}")
    return texts


def of_balance(pairs: pd.DataFrame, places: PlaceTest) -> list[str]:
    """Warnings about the design, from `pair_balance` and `place_test`: one for the faults of the same pairs on the same
    networks."""
    faults_of: dict[tuple[str, str], dict[str, str]] = {}
    for fault in FAULTS:
        rows = pairs[pairs["warning"].str.split("; ").map(lambda faults, fault=fault: fault in faults)]
        if len(rows):
            names = [pair_label(*pair) for pair in rows[["compared", "reference"]].drop_duplicates().to_numpy()]
            where = listing([label(name) for name in rows["network"].unique()])
            faults_of.setdefault((where, listing(names)), {})[fault] = _balance_fault(fault, rows)
    texts = [
        f"{BALANCE[next(iter(faults))]} on {where}. {names}: {'; '.join(faults.values())}."
        for (where, names), faults in faults_of.items()
    ]
    return [*texts, _order(places)] if places.is_ordered else texts


def _balance_fault(fault: str, rows: pd.DataFrame) -> str:
    """The details of the fault that `rows` of `pair_balance` have."""
    if fault == APART:
        some = f"only {_shares(rows['together'])} of the blocks have" if rows["together"].any() else "no block has"
        return f"{some} both protocols"
    if fault == INCOMPLETE:
        return f"only {_shares(rows['complete'])} of the blocks have a valid run of both"
    if fault == FAR:
        gap = rows["gap_minutes"].max()
        gap_text = "some have none at all" if np.isinf(gap) else f"it is typically {_duration(gap)} away"
        return f"{_shares(1 - rows['within_hour'])} of the runs have no partner within an hour, and {gap_text}"
    if fault == UNKNOWN:
        return "the starts of runs are not known"
    sites = sorted({site for names in rows["single_sites"] for site in names.split(", ") if site})
    return f"only one of both has valid runs of {listing(sites)}"


def _shares(values: "pd.Series[float]") -> str:
    return span(share(values.min()), share(values.max()))


def _order(places: PlaceTest) -> str:
    # The test of all networks has an effect of 1, up to rounding, only if no block has another order.
    how = (
        "always measured in the same order"
        if np.isclose(places.effect, 1)
        else f"not measured in random order (p = {p_value(places.p)})"
    )
    return f"Protocols were {how}. So a change within a block looks like a difference between them."


def of_waits(table: pd.DataFrame, cores: int | None, *, without_uwsgi: bool = False) -> list[str]:
    """Warnings about runs on a machine with this number of `cores`, from the table of `waits`, which may lack those of
    uWSGI (`without_uwsgi`)."""
    has_word = table["warning"].astype(str).str.contains
    different = _different(table[has_word(DIFFERENT)], without_uwsgi=without_uwsgi)
    return [*different, *_busy(table[has_word(BUSY)], cores)]


def of_busy_processor(runs: pd.DataFrame, cores: int | None) -> list[str]:
    """Warnings about `runs` that count, on a machine with this number of `cores`: the networks on which a protocol's
    median share of waiting is too large. Needs no contrast."""
    shares = runs.assign(share=wait_shares(runs)).dropna(subset="share")
    medians = shares.groupby(["network", "protocol"], sort=False)["share"].median().groupby("network", sort=False)
    table = medians.agg(share_reference="min", share_compared="max").reset_index()
    return _busy(table[table["share_compared"] > BUSY_SHARE], cores)


def of_few_cores(cores: int | None) -> list[str]:
    """A warning that a load had few `cores`, where no wait for a processor was too long."""
    if not cores or cores > FEW_CORES:
        return []
    return [
        f"A load had {plural('core', cores)} for the browser, the servers and the emulated network, and QUIC needs "
        "more processor time than TCP. With more cores, the difference may be another one."
    ]


def of_impossible_waits(runs: pd.DataFrame) -> list[str]:
    """A warning if threads of `runs` that count cannot have waited for as long as their counters say."""
    if PROCESSOR_WAIT not in runs:
        return []
    numbers = runs.loc[runs[PROCESSOR_WAIT].notna() & possible_waits(runs).isna(), "protocol"].value_counts(sort=False)
    if numbers.empty:
        return []
    names = listing([f"{number} of {label(str(protocol))}" for protocol, number in numbers.items()])
    return [
        f"In {plural('load', int(numbers.sum()))} ({names}), the kernel counted longer waits for a processor than a "
        f"load can have. They are more than {MOST_WAITING} times as long as the load took, and count as missing."
    ]


def _different(table: pd.DataFrame, *, without_uwsgi: bool) -> list[str]:
    if table.empty:
        return []
    pairs: dict[tuple[str, str], str] = {}
    is_longer = table["difference_ms"] > 0
    for (reference, compared, is_compared), rows in table.groupby(["reference", "compared", is_longer], sort=False):
        longer, shorter = (label(compared), label(reference))[:: 1 if is_compared else -1]
        places = rows.drop_duplicates("network")
        differences = [f"{abs(row['difference_ms']):.0f} ms on {label(row['network'])}" for row in records(places)]
        pairs[longer, shorter] = f"{longer} against {shorter} {listing(differences)}"
    longer_ones, shorter_ones = (list(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    # A protocol may have waited longer on one network, and shorter on another.
    is_mixed = not set(longer_ones).isdisjoint(shorter_ones)
    title = (
        "Loads over some protocols waited longer for a processor than those that they are compared with"
        if is_mixed
        else f"Loads over {listing(longer_ones)} waited longer for a processor than those over {listing(shorter_ones)}"
    )
    metrics = listing([label(name) for name in table["metric"].unique()])
    missing = f", not counting uWSGI's waits. {WITHOUT_UWSGI}" if without_uwsgi else "."
    return [
        f"{title}{missing} The differences are "
        f"{'; '.join(pairs.values())} (median, all threads of a load together). On a machine with more cores, these "
        f"protocols may compare differently in {metrics}."
    ]


def _busy(table: pd.DataFrame, cores: int | None) -> list[str]:
    if table.empty:
        return []
    most = table[["share_reference", "share_compared"]].max(axis=1)
    places = listing([label(name) for name in dict.fromkeys(table["network"])])
    machine = f"The machine, of {cores} cores," if cores else "The machine"
    return [
        f"{machine} was saturated on {places}. Threads that had work to do for a load waited for a processor for "
        f"{span(share(most.min()), share(most.max()))} of the time (median, over the protocol that waited most). More "
        f"than {level(BUSY_SHARE)} counts as saturated: these results are no evidence for a machine that is not. More "
        "cores, nothing else on them, or a slower network would help."
    ]


def of_single_sites(verdicts: pd.DataFrame, sensitivity: pd.DataFrame) -> list[str]:
    """Warnings about single sites, for readers of a mean over sites. That sites differ is said beside the verdict
    (`analysis.report.verdicts`).

    `verdicts`: those of single sites on the family's contrasts (`analysis.statistics.contrasts`); `sensitivity`: the
    table of that name. A few sites are exceptions. An answer depends on one site if the change over all sites
    lies outside the interval of the change without that site.
    """
    key = ["reference", "compared", "network", "metric"]
    is_outside = (sensitivity["gain"] < sensitivity["others_low"]) | (sensitivity["gain"] > sensitivity["others_high"])
    outliers = sensitivity[is_outside & (sensitivity["sites"] >= LEAST_COMPARED)].to_dict("records")
    weightiest = {tuple(row[name] for name in key): [row["weightiest_site"]] for row in outliers}
    texts = []
    for contrast, group in verdicts.groupby(key, sort=False):
        on = {word: group.loc[group["verdict"] == word, "site"].tolist() for word in (SLOWER, FASTER)}
        few, many = sorted(on, key=lambda word: len(on[word]))
        is_small = 0 < len(on[few]) < LARGE_MINORITY * (len(on[few]) + len(on[many]))
        if is_small and on[few] != weightiest.get(contrast):
            majority = f"{many} on {len(on[many])} of {plural('site', len(group))}"
            texts.append(f"{_named(contrast)} has exceptions: {majority}, but {few} on {listing(on[few])}.")
    of_site: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in outliers:
        contrasts = of_site.setdefault((row["compared"], row["reference"], row["weightiest_site"]), {})
        place = f"{label(row['metric'])} on {label(row['network'])}"
        contrasts[place] = f"{percent(row['gain'])}, without it {percent(row['without_weightiest'])}"
    for (compared, reference, site), contrasts in of_site.items():
        place, *others = contrasts
        also = f"; also {listing(others)}" if others else ""
        pair = pair_label(compared, reference)
        texts.append(f"One site, {site}, changes the mean of {pair}. Over all sites, {place} {contrasts[place]}{also}.")
    return texts


def _named(contrast: Any) -> str:
    reference, compared, network, metric = contrast
    return f"{pair_label(compared, reference)} in {label(metric)} on {label(network)}"


def of_stability(halves: pd.DataFrame, drift: pd.DataFrame, steps: pd.DataFrame) -> list[str]:
    """Warnings from the tables of stability: a sentence for each kind of change.

    A correlation of blocks with the canary is no warning. The canary is meant to follow the state of the machine, which
    is the same for all runs of a block and cancels within it.
    """
    texts = []
    large = halves[halves["warning"] != ""]
    for kind, rows in large.groupby("kind", sort=False):
        worst = rows.loc[rows["change"].abs().idxmax()]
        what = pair_label(worst["compared"], worst["reference"]) if kind == RATIO else label(worst["compared"])
        noun = "Ratios within blocks" if kind == RATIO else "Times"
        texts.append(
            f"{noun} differ between the first and the second half of the campaign. They do in {len(rows)} of "
            f"{(halves['kind'] == kind).sum()} cases, most for {what} on {label(worst['network'])} "
            f"({label(worst['metric'])} {percent(worst['change'])}, {percent_interval(worst['low'], worst['high'])})."
        )
    texts += _of_metrics(drift, DRIFTS, "drift", percent, "Times change from the first block to the last")
    texts += _of_metrics(drift, ALIKE, "serial", "{:.2f}".format, "Blocks go with the block before them (correlation)")
    for factor, name in (("place", "place in the block"), (MACHINE, "machine"), (LANE, "lane")):
        rows = steps[steps["factor"] == factor]
        texts += _of_metrics(rows, factor, "spread", percent, f"Times depend on the {name} (slowest against fastest)")
    return [*texts, *of_concurrency(steps)]


def of_carry_over(table: pd.DataFrame) -> list[str]:
    """A warning if loads depend on the load before, from the table of `carry_over`."""
    rows = table[table["warning"] != ""]
    if rows.empty:
        return []
    worst = rows.loc[rows["ratio_off"].idxmax()]
    return [
        f"Times depend on which protocol was loaded before. They do in {len(rows)} of {len(table)} cases, most for "
        f"{label(worst['metric'])} on {label(worst['network'])} ({share(worst['spread'])} longer after "
        f"{label(worst['slowest'])} than after {label(worst['fastest'])}). This alone changes ratios of two protocols "
        f"by up to {share(worst['ratio_off'])}."
    ]


def of_wandering(table: pd.DataFrame) -> list[str]:
    """Warnings about ratios that change while they are measured, from the table of `wandering`: a sentence for each
    kind and pair."""
    texts = []
    groups = {BATCHES: "batches of successive blocks", SITTINGS: "sittings"}
    for (kind, *pair), rows in table.groupby(["kind", "compared", "reference"], sort=False):
        wandering = records(rows[rows["warning"] != ""])
        cases = [
            f"{label(row['metric'])} on {label(row['network'])} "
            f"{percent_interval(row['wide_low'], row['wide_high'])}, not "
            f"{percent_interval(row['low'], row['high'])}"
            for row in wandering
            if np.isfinite(row["wide_low"])
        ]
        if wandering:
            longer = f" Intervals from {groups[kind]} are longer: {_some_names(cases)}." if cases else ""
            texts.append(
                f"The ratio of {pair_label(*pair)} wanders while it is measured. It changes by more than runs scatter "
                f"in {len(wandering)} of {len(rows)} cases.{longer}"
            )
    return texts


def of_concurrency(steps: pd.DataFrame) -> list[str]:
    """A warning if times depend on the number of loads that shared processors; `steps` is the table of that name."""
    rows = steps[steps["factor"] == CONCURRENT_LOADS]
    what = "Times depend on the number of concurrent loads, which shared processors (most against fewest)"
    return _of_metrics(rows, CONCURRENT_LOADS, "spread", percent, what)


def _of_metrics(table: pd.DataFrame, fault: str, column: str, text: Callable[[float], str], what: str) -> list[str]:
    """One sentence on the rows of `table` whose warning names `fault`, with their values of `column`; none without such
    rows."""
    rows = table[table["warning"].astype(str).str.contains(fault)]
    values = [f"{label(row.metric)} {text(getattr(row, column))}" for row in rows.itertuples()]
    return [f"{what}: {listing(values)}."] if values else []


def _duration(minutes: float) -> str:
    for unit, length in (("day", 1440), ("hour", 60)):
        if minutes >= 2 * length:
            return plural(unit, round(minutes / length))
    return plural("minute", round(minutes))
