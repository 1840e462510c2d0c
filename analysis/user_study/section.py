"""The report's section on a campaign's user study: the participants, what they noticed, and how they rate."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.runs import records, rows_of
from analysis.text import NOTHING, label, level, listing, number, p_value, plural, share
from analysis.user_study import figures, results
from analysis.user_study.clips import KEY, MEASURED, Key, read_key
from analysis.user_study.kit import VOTES
from analysis.user_study.results import CONFIDENCE, LEAST_UNITS, PREFERENCE, RATING, SIGNIFICANT_P, Counted
from analysis.user_study.settings import HIGHEST, LOWEST, load
from analysis.user_study.votes import VotesRead, read_votes
from dataset.table import USER_STUDY

NAME = "user-study"
# The metrics that the figures show; the tables have all metrics.
DRAWN_METRICS = ("si", "plt")
ALL_NETWORKS = "all"


@dataclass(frozen=True)
class Answers:
    """All tables of a user study, from the votes that count (`analysis.user_study.results`)."""

    key: Key
    who: Counted
    pairs: pd.DataFrame
    ratings: pd.DataFrame

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The shares of votes that notice a difference, by network and pair."""
        return results.shares(self.pairs)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Mean opinion scores, by network and protocol."""
        return results.opinion_scores(self.ratings)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """The decisions of the study: preferences, and differences of ratings."""
        return results.differences(self.pairs, self.ratings)

    @cached_property
    def of_clips(self) -> pd.DataFrame:
        """The mean rating of each clip, with metrics."""
        return results.clip_scores(self.ratings, self.key)

    @cached_property
    def of_pairs(self) -> pd.DataFrame:
        """The preference in each pair of films, with metrics."""
        return results.clip_preferences(self.pairs, self.key)

    def correlations(self) -> list[tuple[str, str, pd.DataFrame]]:
        """A name, a title and the correlations with metrics: of ratings, and of preferences."""
        metrics = results.metrics_of(self.key)
        return [
            ("ratings", "Mean ratings of clips", results.correlations(self.of_clips, "score", metrics)),
            ("preferences", "Preferences in pairs", results.correlations(self.of_pairs, "preference", metrics)),
        ]


def section(folder: Path) -> Section | None:
    """The section on the user study of the campaign in `folder`; None if it has no votes. Raises EyelevelError."""
    kit = folder / USER_STUDY
    if not (kit / KEY).exists():
        return None
    key = read_key(kit)
    read = read_votes(kit / VOTES, key)
    if read.table.empty and not read.broken and not read.of_others:
        return None
    who = results.counted(read.table, key)
    answers = Answers(key, who, results.pair_votes(who.votes, key), results.ratings(who.votes, key))
    paragraphs = (
        lead(answers),
        participants(who, read),
        *controls(who, key),
        *with_metrics(answers),
        *definitions(key),
    )
    return Section(NAME, "User study", paragraphs, tuple(_figures(answers)), tables=tuple(_tables(answers)))


def lead(answers: Answers) -> str:
    """The differences that people noticed on each network, and whether they rate protocols differently."""
    sentences = []
    for row in records(answers.shares):
        first, second = label(row["reference"]), label(row["compared"])
        notice = _interval(row["notice_share"], row["notice_low"], row["notice_high"])
        pair = {name: row[name] for name in ("network", "reference", "compared")}
        (decision,) = records(rows_of(answers.differences, question=PREFERENCE, **pair))
        sentences.append(
            f"On {label(row['network'])}, people notice a difference between {first} and {second} in {notice} of "
            f"their votes: {share(row['compared_share'])} say that {second} loads faster, "
            f"{share(row['reference_share'])} that {first} does. {decided(decision)}"
        )
    for network in dict.fromkeys(answers.ratings["network"]):
        scores = rows_of(answers.scores, network=network)
        means = listing([f"{label(one['protocol'])} {one['score']:.0f}" for one in records(scores)])
        sentences.append(f"On {label(network)}, mean opinion scores, of {LOWEST} to {HIGHEST}, are {means}.")
        sentences += [decided(row) for row in records(rows_of(answers.differences, question=RATING, network=network))]
    return " ".join(sentences) or "No vote counts so far."


def decided(row: Mapping[str, Any]) -> str:
    """A sentence: what a row of `results.differences` decides."""
    first, second, rated = label(row["reference"]), label(row["compared"]), row["question"] == RATING
    if math.isnan(row["p"]):
        people = f"{row['participants']} {'person' if row['participants'] == 1 else 'people'}"
        return (
            f"Whether {first} or {second} is {'rated higher' if rated else 'preferred'} is not decided: {people} and "
            f"{plural('site', row['sites'])} are too few ({LEAST_UNITS} of each are needed)."
        )
    ends = [row["difference"], row["low"], row["high"]]
    if row["difference"] < 0:
        first, second, ends = second, first, [-row["difference"], -row["high"], -row["low"]]
    by, low, high = (f"{end:.1f}" if rated else f"{100 * end:.0f}" for end in ends)
    size = f"by {by}{'' if rated else ' points'} ({low} to {high}; corrected p = {p_value(row['p_corrected'])})"
    if not row["is_shown"]:
        return f"Neither is shown to be {'rated higher' if rated else 'preferred'}: {second} {size}."
    return f"{second} is {'rated higher than' if rated else 'preferred to'} {first} {size}."


def participants(who: Counted, read: VotesRead) -> str:
    """The numbers of participants: all who took part, and those who are left out, with the reasons."""
    people = who.participants
    reasons = [f"{count} {reason}" for reason, count in results.exclusions(people) if count]
    count = int((people["reason"] == "").sum())
    text = f"{len(people)} {'person' if len(people) == 1 else 'people'} took part, of whom {count} count"
    text += f" (left out: {', '.join(reasons)})." if reasons else "."
    if who.still:
        text += f" {plural('vote', who.still)} of theirs on films that stood still {_is(who.still)} left out."
    for lines, what in ((read.broken, "no vote"), (read.of_others, "on another study"), (read.repeated, "there twice")):
        if lines:
            text += f" {plural('line', lines)} of the files of votes {_is(lines)} {what}."
    return text


def controls(who: Counted, key: Key) -> list[str]:
    """How often people see a difference between identical films; all differences that they notice must be compared with
    this."""
    seen = results.false_differences(who.votes, key)
    if math.isnan(seen.mean):
        return []
    return [
        f"Between identical films, people see a difference in {_interval(seen.mean, seen.low, seen.high)} of their "
        "votes. Compare their votes on protocols with that."
    ]


def with_metrics(answers: Answers) -> list[str]:
    """The correlation of votes with metrics, over all networks."""
    sentences = []
    for _, title, table in answers.correlations():
        over_all = table[(table["network"] == "") & table["pearson"].notna()]
        if len(over_all):
            strongest = over_all.loc[over_all["pearson"].abs().idxmax()]
            parts = listing([f"{label(row['metric'])} {row['pearson']:+.2f}" for row in records(over_all)])
            sentences.append(
                f"{title} go with metrics by Pearson's r of {parts}, over {int(strongest['clips'])} clips; strongest "
                f"with {label(str(strongest['metric']))}."
            )
    return [" ".join(sentences)] if sentences else []


def definitions(key: Key) -> list[str]:
    """The definitions of the numbers, and their limits."""
    rules = key.rules
    sides = [side for clip in key.clips if clip.kind == MEASURED for side in clip.sides]
    off = max((abs(side.metrics["si"] / side.median_si_ms - 1) for side in sides if side.median_si_ms), default=0.0)
    return [
        "A clip shows the run whose Speed Index is nearest to the median of its setting, of those whose films were "
        f"there when the kit was written: at most {share(off)} off it. All films have one rate and size; those of a "
        "pair are one film, in which both begin with the navigation, and sides are changed for half of the pairs of "
        "each participant.",
        f"Participants are left out if they did not finish, failed more than {rules.failed_controls} controls with a "
        f"delay of seconds, were away from the page for more than {rules.longest_away_s:g} s during a film and its "
        f"question, or took more than {rules.longest_session_min:g} minutes. Votes are left out on films that stood "
        f"still for more than {rules.longest_still_ms:g} ms in their first play. These rules were fixed when the kit "
        "was written.",
        f"Intervals hold with {level(CONFIDENCE)} confidence. Those of shares and mean opinion scores are Student's "
        "over participants, each with the mean of their own votes. A preference or a difference of ratings is shown at "
        f"p < {SIGNIFICANT_P:g}, corrected by Bonferroni's method over all of this study. Protocols are compared "
        "within people and within sites. The tests over people, over sites, and with both errors together must all "
        "reject, so what is shown is about other people and other sites, too. The analysis of variance is the paper's, "
        "over votes, and decides nothing here. A correlation is over clips, whose number is small, and says nothing of "
        "causes.",
    ]


def _interval(value: float, low: float, high: float) -> str:
    interval = f" ({share(low)} to {share(high)})" if math.isfinite(low) else ""
    return f"{share(value)}{interval}" if math.isfinite(value) else NOTHING


def _range(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if math.isfinite(low) else NOTHING


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _figures(answers: Answers) -> Iterator[ReportFigure]:
    shares, scores = answers.shares, answers.scores
    if len(shares):
        protocols = list(dict.fromkeys(side.protocol for clip in answers.key.clips for side in clip.sides))
        caption = (
            f"Answers on pairs; lines: {level(CONFIDENCE)} intervals over participants; in brackets: how many "
            "votes there are."
        )
        finding = "; ".join(
            f"{label(row['network'])}: {label(row['reference'])} {share(row['reference_share'])}, no difference "
            f"{share(1 - row['notice_share'])}, {label(row['compared'])} {share(row['compared_share'])}"
            for row in records(shares)
        )
        yield ReportFigure("user_study_shares", caption, figures.draw_shares, (shares, protocols), f"{finding}.")
    if len(scores):
        caption = f"Mean opinion scores with their {level(CONFIDENCE)} intervals over participants."
        finding = "; ".join(
            f"{label(row['network'])}, {label(row['protocol'])}: {row['score']:.0f}" for row in records(scores)
        )
        words = load().words.scale
        yield ReportFigure("user_study_scores", caption, figures.draw_scores, (scores, words), f"{finding}.")
    metrics = [name for name in DRAWN_METRICS if name in results.metrics_of(answers.key)]
    if metrics and (len(shares) or len(scores)):
        caption = "Votes and what was measured: a point for each clip; preferences are above 0 for the second film."
        tables = (answers.of_clips, answers.of_pairs, metrics)
        finding = " ".join(with_metrics(answers))
        yield ReportFigure("user_study_metrics", caption, figures.draw_against_metrics, tables, finding)


def _tables(answers: Answers) -> Iterator[ReportTable]:
    people = answers.who.participants
    counts = [("took part", len(people)), *results.exclusions(people), ("count", int((people["reason"] == "").sum()))]
    table = pd.DataFrame(counts, columns=["participants", "number"])
    yield _table("participants", "Participants", table, {"participants": "participants", "number": "number"})
    of_site = {"site": "site"}
    if len(answers.differences):
        yield _table("differences", "Decisions: preferences and ratings", answers.differences, DIFFERENCES)
    if len(answers.pairs):
        by_site = results.shares(answers.pairs, ("site", "network", "reference", "compared"))
        yield _table("shares", "Pairs: what people notice", answers.shares, SHARES)
        yield _table("shares_by_site", "Pairs: what people notice, by site", by_site, of_site | SHARES)
    if len(answers.ratings):
        by_site = results.opinion_scores(answers.ratings, ("site", "network", "protocol"))
        tests = [results.variance(answers.ratings, by) for by in (["network"], ["site", "network"])]
        of_paper = "Ratings, as in the paper: analysis of variance over votes"
        yield _table("scores", "Mean opinion scores", answers.scores, SCORES)
        yield _table("variance", of_paper, tests[0], VARIANCE)
        yield _table("scores_by_site", "Mean opinion scores, by site", by_site, of_site | SCORES)
        yield _table("variance_by_site", f"{of_paper}, by site", tests[1], of_site | VARIANCE)
    for name, title, correlations in answers.correlations():
        if len(correlations):
            yield _table(f"{name}_and_metrics", f"{title} and metrics", correlations, CORRELATIONS)


def _table(name: str, title: str, data: pd.DataFrame, columns: Mapping[Any, Any]) -> ReportTable:
    return ReportTable(f"user_study_{name}", title, data, text_table(data, columns))


SHARES: dict[Any, Any] = {
    "network": ("network", label),
    ("reference", "compared"): ("pair", lambda reference, compared: f"{label(reference)}, {label(compared)}"),
    "votes": "votes",
    "participants": "participants",
    ("notice_share", "notice_low", "notice_high"): ("notice a difference", _interval),
    ("reference_share", "reference_low", "reference_high"): ("first is faster", _interval),
    ("compared_share", "compared_low", "compared_high"): ("second is faster", _interval),
    "mean_plays": ("plays", number),
    "median_answer_s": ("median answer [s]", number),
}
DIFFERENCES: dict[Any, Any] = {
    "question": "question",
    "network": ("network", label),
    ("reference", "compared"): ("pair", lambda reference, compared: f"{label(reference)}, {label(compared)}"),
    "participants": "participants",
    "sites": "sites",
    "difference": ("second less first", number),
    ("low", "high"): ("interval", _range),
    "p_people": ("p over people", p_value),
    "p_sites": ("p over sites", p_value),
    "p": ("p", p_value),
    "p_corrected": ("corrected p", p_value),
}
SCORES: dict[Any, Any] = {
    "network": ("network", label),
    "protocol": ("protocol", label),
    "votes": "votes",
    "participants": "participants",
    "score": ("mean opinion score", number),
    ("low", "high"): ("interval", _range),
    "deviation": ("standard deviation", number),
    "median_answer_s": ("median answer [s]", number),
}
VARIANCE: dict[Any, Any] = {
    "network": ("network", label),
    "protocols": "protocols",
    "votes": "votes",
    "f": ("F", number),
    "p": ("p", p_value),
}
CORRELATIONS: dict[Any, Any] = {
    "network": ("network", lambda name: label(name) if name else ALL_NETWORKS),
    "metric": ("metric", label),
    "clips": ("clips", lambda count: f"{count:.0f}"),
    "pearson": ("Pearson's r", number),
    ("pearson_low", "pearson_high"): ("interval", _range),
    "pearson_p": ("p", p_value),
    "spearman": ("Spearman's rho", number),
    "spearman_p": ("p of rho", p_value),
}
