"""The report's section on a campaign's user study: who took part, what they noticed, and how they rate."""

import math
from pathlib import Path

import pandas as pd

from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.text import label, level, listing, number, p_value, pair_label, plural, share
from analysis.user_study import figures, results
from analysis.user_study.clips import KEY, MEASURED, Key, read_key
from analysis.user_study.kit import FOLDER, VOTES
from analysis.user_study.results import CONFIDENCE, SIGNIFICANT_P, Counted
from analysis.user_study.settings import HIGHEST, LOWEST, load
from analysis.user_study.votes import VotesRead, read_votes

NAME = "user-study"
# Of the pictures; the tables have all metrics.
DRAWN_METRICS = ("si", "plt")
ALL_NETWORKS = "all"


def section(folder: Path) -> Section | None:
    """The section on the user study of the campaign in `folder`; None when it has no votes. Raises EyelevelError."""
    kit = folder / FOLDER
    if not (kit / KEY).exists():
        return None
    key = read_key(kit)
    read = read_votes(kit / VOTES, key)
    if read.table.empty and not read.broken:
        return None
    who = results.counted(read.table, key)
    pairs, rated = results.pair_votes(who.votes, key), results.ratings(who.votes, key)
    shares, scores = results.shares(pairs), results.opinion_scores(rated)
    variance = results.variance(rated, ["network"])
    of_clips, of_pairs = results.clip_scores(rated, key), results.clip_preferences(pairs, key)
    metrics = results.metrics_of(key)
    rating_r = results.correlations(of_clips, "score", metrics)
    preference_r = results.correlations(of_pairs, "preference", metrics)
    paragraphs = [
        lead(shares, variance, scores),
        participants(who, read),
        *controls(who, key),
        *with_metrics(rating_r, preference_r),
        *definitions(key),
    ]
    return Section(
        NAME,
        "User study",
        tuple(paragraphs),
        tuple(_figures(key, shares, scores, of_clips, of_pairs, metrics)),
        tables=tuple(_tables(key, who, pairs, rated, shares, scores, variance, rating_r, preference_r)),
    )


def lead(shares: pd.DataFrame, variance: pd.DataFrame, scores: pd.DataFrame) -> str:
    """What people noticed, and whether they rate differently, behind each network."""
    sentences = []
    for row in results.records(shares):
        pair = pair_label(str(row["compared"]), str(row["reference"]))
        noticed = _interval(row["notice_share"], row["notice_low"], row["notice_high"])
        sentences.append(
            f"Behind {label(str(row['network']))}, {noticed} of {plural('vote', row['votes'])} notice a difference between "
            f"{label(str(row['reference']))} and {label(str(row['compared']))}: {share(row['compared_share'])} say that "
            f"{label(str(row['compared']))} loads faster, {share(row['reference_share'])} that "
            f"{label(str(row['reference']))} does"
            + (f" ({pair}: p = {p_value(row['preference_p'])})." if row["notice_share"] else ".")
        )
    for row in results.records(variance):
        network = str(row["network"])
        means = [
            f"{label(str(one['protocol']))} {one['score']:.0f}"
            for one in results.records(scores[scores["network"] == network])
        ]
        if math.isnan(row["p"]):
            verdict = "too few ratings to compare protocols"
        else:
            verdict = (
                "ratings differ between protocols" if row["p"] < SIGNIFICANT_P else "ratings are not shown to differ"
            )
            verdict += f" (ANOVA, p = {p_value(row['p'])})"
        sentences.append(
            f"Behind {label(network)}, {verdict}; mean opinion scores of {LOWEST} to {HIGHEST}: {listing(means)}."
        )
    return " ".join(sentences) or "No vote counts so far."


def participants(who: Counted, read: VotesRead) -> str:
    """Who took part, who is left out, and why."""
    people = who.participants
    left_out = [f"{count} {reason}" for reason, count in results.exclusions(people) if count]
    text = f"{plural('person', len(people)).replace('persons', 'people')} took part"
    text += f", of whom {len(people) - int((people['reason'] != '').sum())} count"
    text += f" (left out: {', '.join(left_out)})." if left_out else "."
    if who.still:
        text += f" {plural('vote', who.still)} of theirs on films that stood still {'is' if who.still == 1 else 'are'} left out."
    for count, what in ((read.broken, "no vote"), (read.of_others, "on another study"), (read.repeated, "there twice")):
        if count:
            text += f" {plural('line', count)} of the files of votes {'is' if count == 1 else 'are'} {what}."
    return text


def controls(who: Counted, key: Key) -> list[str]:
    """How often people see a difference between identical films, beside which all that they notice must be seen."""
    seen, low, high = results.false_differences(who.votes, key)
    if math.isnan(seen):
        return []
    return [
        f"Between identical films, {_interval(seen, low, high)} of the votes see a difference. What people notice between "
        "protocols is to be compared with that."
    ]


def with_metrics(ratings: pd.DataFrame, preferences: pd.DataFrame) -> list[str]:
    """How votes go with metrics, over all networks."""
    sentences = []
    for table, noun in ((ratings, "Mean ratings of clips"), (preferences, "Preferences in pairs")):
        over_all = table[(table["network"] == "") & table["pearson"].notna()]
        if len(over_all):
            strongest = over_all.loc[over_all["pearson"].abs().idxmax()]
            parts = [f"{label(row['metric'])} {row['pearson']:+.2f}" for row in results.records(over_all)]
            sentences.append(
                f"{noun} go with metrics by Pearson's r of {listing(parts)} over {int(strongest['clips'])} clips; the "
                f"strongest is {label(str(strongest['metric']))}."
            )
    return [" ".join(sentences)] if sentences else []


def definitions(key: Key) -> list[str]:
    """What the numbers are, and what they do not say."""
    rules = key.rules
    sides = [side for clip in key.clips if clip.kind == MEASURED for side in clip.sides]
    off = max((abs(side.metrics["si"] / side.median_si_ms - 1) for side in sides if side.median_si_ms), default=0.0)
    return [
        "A clip shows the run whose Speed Index is nearest to the median of its setting, of those whose films were there "
        f"when the kit was written: at most {share(off)} off it. All films have one rate and size; those of a pair are one "
        "film, in which both begin with the navigation, and sides are changed for half of the pairs of each participant.",
        f"Left out is who has not finished, fails more than {rules.failed_controls} controls with a delay of seconds, was away "
        f"from the page for more than {rules.longest_away_s:g} s during a film and its question, or took more than "
        f"{rules.longest_session_min:g} minutes; and the vote on a film that stood still for more than "
        f"{rules.longest_still_ms:g} ms while it was first played. These rules were fixed when the kit was written.",
        f"Intervals hold with {level(CONFIDENCE)} confidence. Wilson's intervals of shares take votes for independent; the "
        "table has the interval over participants beside them, which is the one to trust where each gave many votes. That of "
        "a mean opinion score is Student's over participants. The analysis of variance is the paper's, over votes, without "
        "correction for the number of tests. A correlation is over clips, whose number is small, and says nothing of causes.",
    ]


def _interval(value: float, low: float, high: float) -> str:
    return f"{share(value)} ({share(low)} to {share(high)})"


def _figures(
    key: Key, shares: pd.DataFrame, scores: pd.DataFrame, clips: pd.DataFrame, pairs: pd.DataFrame, metrics: list[str]
) -> list[ReportFigure]:
    drawn = []
    protocols = list(dict.fromkeys(side.protocol for clip in key.clips for side in clip.sides))
    if len(shares):
        caption = "What people say of pairs; the lines are Wilson's intervals, the numbers of votes stand in brackets."
        parts = [
            f"{label(str(row['network']))}: {label(str(row['reference']))} {share(row['reference_share'])}, no difference "
            f"{share(1 - row['notice_share'])}, {label(str(row['compared']))} {share(row['compared_share'])}"
            for row in results.records(shares)
        ]
        drawn.append(
            ReportFigure("user_study_shares", caption, figures.draw_shares, (shares, protocols), "; ".join(parts) + ".")
        )
    if len(scores):
        words = load().words.scale
        caption = f"Mean opinion scores with their {level(CONFIDENCE)} intervals over participants."
        parts = [
            f"{label(str(row['network']))}, {label(str(row['protocol']))}: {row['score']:.0f}"
            for row in results.records(scores)
        ]
        drawn.append(
            ReportFigure("user_study_scores", caption, figures.draw_scores, (scores, words), "; ".join(parts) + ".")
        )
    shown = [name for name in DRAWN_METRICS if name in metrics]
    if shown and (len(clips) or len(pairs)):
        caption = "Votes and what was measured: a point for each clip; preferences are above 0 for the second film."
        drawn.append(ReportFigure("user_study_metrics", caption, figures.draw_against_metrics, (clips, pairs, shown)))
    return drawn


def _tables(
    key: Key,
    who: Counted,
    pairs: pd.DataFrame,
    rated: pd.DataFrame,
    shares: pd.DataFrame,
    scores: pd.DataFrame,
    variance: pd.DataFrame,
    rating_r: pd.DataFrame,
    preference_r: pd.DataFrame,
) -> list[ReportTable]:
    count = pd.DataFrame(
        [
            ("took part", len(who.participants)),
            *results.exclusions(who.participants),
            ("count", int((who.participants["reason"] == "").sum())),
        ],
        columns=["participants", "number"],
    )
    tables = [
        ReportTable(
            "user_study_participants",
            "Participants",
            count,
            text_table(count, {"participants": "participants", "number": "number"}),
        )
    ]
    if len(shares):
        by_site = results.shares(pairs, ("site", "network", "reference", "compared"))
        tables += [
            ReportTable("user_study_shares", "Pairs: what people notice", shares, text_table(shares, SHARES)),
            ReportTable(
                "user_study_shares_by_site", "Pairs, by site", by_site, text_table(by_site, {"site": "site", **SHARES})
            ),
        ]
    if len(scores):
        by_site = results.opinion_scores(rated, ("site", "network", "protocol"))
        of_sites = results.variance(rated, ["site", "network"])
        tables += [
            ReportTable("user_study_scores", "Mean opinion scores", scores, text_table(scores, SCORES)),
            ReportTable(
                "user_study_variance", "Ratings: analysis of variance", variance, text_table(variance, VARIANCE)
            ),
            ReportTable(
                "user_study_scores_by_site",
                "Mean opinion scores, by site",
                by_site,
                text_table(by_site, {"site": "site", **SCORES}),
            ),
            ReportTable(
                "user_study_variance_by_site",
                "Ratings: analysis of variance, by site",
                of_sites,
                text_table(of_sites, {"site": "site", **VARIANCE}),
            ),
        ]
    for name, title, table in (
        ("user_study_ratings_and_metrics", "Ratings and metrics", rating_r),
        ("user_study_preferences_and_metrics", "Preferences and metrics", preference_r),
    ):
        if len(table):
            tables.append(ReportTable(name, title, table, text_table(table, CORRELATIONS)))
    return tables


def _share_interval(value: float, low: float, high: float) -> str:
    return _interval(value, low, high) if math.isfinite(value) else "-"


SHARES: dict[object, object] = {
    "network": ("network", label),
    ("reference", "compared"): ("pair", lambda reference, compared: f"{label(reference)}, {label(compared)}"),
    "votes": "votes",
    "participants": "participants",
    ("notice_share", "notice_low", "notice_high"): ("notice a difference", _share_interval),
    ("people_low", "people_high"): ("the same over participants", lambda low, high: f"{share(low)} to {share(high)}"),
    ("reference_share", "reference_low", "reference_high"): ("first is faster", _share_interval),
    ("compared_share", "compared_low", "compared_high"): ("second is faster", _share_interval),
    "preference_p": ("p of the preference", p_value),
    "mean_plays": ("plays", number),
    "median_answer_s": ("median answer [s]", number),
}
SCORES: dict[object, object] = {
    "network": ("network", label),
    "protocol": ("protocol", label),
    "votes": "votes",
    "participants": "participants",
    "score": ("mean opinion score", number),
    ("low", "high"): ("interval", lambda low, high: f"{number(low)} to {number(high)}" if math.isfinite(low) else "-"),
    "deviation": ("standard deviation", number),
    "median_answer_s": ("median answer [s]", number),
}
VARIANCE: dict[object, object] = {
    "network": ("network", label),
    "protocols": "protocols",
    "votes": "votes",
    "f": ("F", number),
    "p": ("p", p_value),
}
CORRELATIONS: dict[object, object] = {
    "network": ("network", lambda name: label(name) if name else ALL_NETWORKS),
    "metric": ("metric", label),
    "clips": ("clips", lambda count: f"{count:.0f}"),
    "pearson": ("Pearson's r", number),
    ("pearson_low", "pearson_high"): (
        "interval",
        lambda low, high: f"{number(low)} to {number(high)}" if math.isfinite(low) else "-",
    ),
    "pearson_p": ("p", p_value),
    "spearman": ("Spearman's rho", number),
    "spearman_p": ("p of rho", p_value),
}
