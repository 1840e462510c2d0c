"""Statistics of votes: who counts, shares, mean opinion scores, and the correlation of both with the measured metrics.

All functions take and return tables; `Key` says what each clip shows. Votes of one person are not independent, nor are
votes on one site: two runs of a site are shown to everybody, and may differ for reasons of their own. So intervals are
over people, each with the mean of their own votes, and what is decided must be true of other people and other sites
(`differences`).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.runs import records
from analysis.statistics.intervals import Estimate, over_runs
from analysis.statistics.ratios import independent_difference, of_numbers
from analysis.user_study.clips import DELAYED, IDENTICAL, MEASURED, PLAIN, Clip, Key
from analysis.user_study.settings import HIGHEST, LOWEST, PAIRS, RATINGS
from analysis.user_study.votes import LEFT, SAME
from base.errors import EyelevelError

CONFIDENCE = 0.95
# The threshold for all tests of a study together.
SIGNIFICANT_P = 0.01
# With fewer people or fewer sites, nothing is decided.
LEAST_UNITS = 5
# The reasons for leaving a participant out, in the order in which they are checked.
UNFINISHED, CONTROL, AWAY, TOO_LONG = "not finished", "control failed", "away from the page", "took too long"
REASONS = (UNFINISHED, CONTROL, AWAY, TOO_LONG)
# The answers on a pair: which film loads faster, by its place in the pair.
REFERENCE, COMPARED = "reference", "compared"
# With fewer clips a correlation says nothing.
LEAST_CLIPS = 3


@dataclass(frozen=True)
class Counted:
    """The participants, one per row, with the `reason` if they are left out; and the votes that count. `still`: how
    many votes of participants who count are left out since their films did not play smoothly."""

    participants: pd.DataFrame
    votes: pd.DataFrame
    still: int


def counted(votes: pd.DataFrame, key: Key) -> Counted:
    """The participants who count by the rules of `key`, and those of their votes whose films played smoothly."""
    clips = key.by_name()
    people: list[dict[str, Any]] = []
    for participant, session in votes.groupby("participant", sort=False):
        failed = failed_controls(session, clips)
        people.append(
            {
                "participant": participant,
                "group": session["group"].iloc[0],
                "votes": len(session),
                "trials": int(session["trials"].max()),
                "failed_controls": failed,
                "longest_away_s": session["away_ms"].max() / 1000,
                "session_min": session["session_ms"].max() / 60_000,
                "reason": _reason(session, failed, key),
            }
        )
    columns = ["participant", "group", "votes", "trials", "failed_controls", "longest_away_s", "session_min", "reason"]
    participants = pd.DataFrame(people, columns=columns)
    kept = set(participants.loc[participants["reason"] == "", "participant"])
    of_kept = votes[votes["participant"].isin(kept)]
    is_smooth = of_kept["still_ms"] <= key.rules.longest_still_ms
    return Counted(participants, of_kept[is_smooth], int((~is_smooth).sum()))


def _reason(session: pd.DataFrame, failed: int, key: Key) -> str:
    rules = key.rules
    if len(session) < session["trials"].max():
        return UNFINISHED
    if failed > rules.failed_controls:
        return CONTROL
    if session["away_ms"].max() > 1000 * rules.longest_away_s:
        return AWAY
    if session["session_ms"].max() > 60_000 * rules.longest_session_min:
        return TOO_LONG
    return ""


def failed_controls(session: pd.DataFrame, clips: dict[str, Clip]) -> int:
    """How many controls a participant failed. A pair with a delayed side is failed if the answer is not that the other
    side loads faster. A delayed film is failed if it is not rated worse than the same film without a delay."""
    kinds = [(clips[row["clip"]], row) for row in records(session)]
    failed = sum(answer_of(row) != REFERENCE for clip, row in kinds if clip.part == PAIRS and clip.kind == DELAYED)
    plain = {clip.sides[0].film: row["answer"] for clip, row in kinds if clip.part == RATINGS and clip.kind == PLAIN}
    for clip, row in kinds:
        if clip.part == RATINGS and clip.kind == DELAYED and clip.sides[0].film in plain:
            failed += int(row["answer"]) >= int(plain[clip.sides[0].film])
    return failed


def answer_of(vote: dict[str, Any]) -> str:
    """Which film loads faster according to a vote on a pair: the reference's, the compared one's, or neither."""
    if vote["answer"] == SAME:
        return SAME
    return REFERENCE if (vote["answer"] == LEFT) != vote["swapped"] else COMPARED


def pair_votes(votes: pd.DataFrame, key: Key, kind: str = MEASURED) -> pd.DataFrame:
    """The votes on pairs: the participant, the clip with its site, network and protocols, and the answer
    (`answer_of`)."""
    clips = key.by_name()
    rows = [
        {
            "participant": row["participant"],
            "clip": clip.name,
            "site": clip.site,
            "network": clip.network,
            "reference": clip.sides[0].protocol,
            "compared": clip.sides[1].protocol,
            "says": answer_of(row),
            "plays": row["plays"],
            "answer_s": row["answer_ms"] / 1000,
        }
        for row in _in_order(votes, clips)
        if (clip := clips[row["clip"]]).part == PAIRS and clip.kind == kind
    ]
    columns = ["participant", "clip", "site", "network", "reference", "compared", "says", "plays", "answer_s"]
    return pd.DataFrame(rows, columns=columns)


def ratings(votes: pd.DataFrame, key: Key) -> pd.DataFrame:
    """The ratings of films, from LOWEST to HIGHEST: the participant, and the clip with its site, network and
    protocol."""
    clips = key.by_name()
    rows = [
        {
            "participant": row["participant"],
            "clip": clip.name,
            "site": clip.site,
            "network": clip.network,
            "protocol": clip.sides[0].protocol,
            "rating": float(row["answer"]),
            "plays": row["plays"],
            "answer_s": row["answer_ms"] / 1000,
        }
        for row in _in_order(votes, clips)
        if (clip := clips[row["clip"]]).part == RATINGS and clip.kind == MEASURED
    ]
    columns = ["participant", "clip", "site", "network", "protocol", "rating", "plays", "answer_s"]
    return pd.DataFrame(rows, columns=columns)


def _in_order(votes: pd.DataFrame, clips: Iterable[str]) -> list[dict[str, Any]]:
    """Votes in the order of the `clips`, which is the order of the campaign's networks, sites and protocols."""
    places = {clip: place for place, clip in enumerate(clips)}
    return sorted(records(votes), key=lambda row: places[row["clip"]])


def over_people(votes: "pd.Series[bool]", participants: "pd.Series[str]") -> Estimate:
    """The mean over participants of the share of their own `votes` that are true, with Student's interval.

    If all votes are equal, the interval is Clopper and Pearson's (1934), with one vote for each participant.
    """
    by_person = votes.groupby(participants).mean()
    estimate = over_runs(by_person, CONFIDENCE, (0.0, 1.0))
    if estimate.mean not in (0, 1):
        return estimate
    people = len(by_person)
    low, high = proportion_confint(int(by_person.sum()), people, alpha=1 - CONFIDENCE, method="beta")
    return Estimate(estimate.mean, float(low), float(high), people)


def shares(pairs: pd.DataFrame, by: Sequence[str] = ("network", "reference", "compared")) -> pd.DataFrame:
    """For each network and pair of protocols: the shares of votes that notice a difference, that say the reference
    loads faster, and that say the compared one does; each with its interval (`over_people`)."""
    rows = []
    for names, group in pairs.groupby([*by], sort=False):
        row: dict[str, Any] = dict(zip(by, names, strict=True)) | {
            "votes": len(group),
            "participants": group["participant"].nunique(),
        }
        says = group["says"]
        for name, votes in (("notice", says != SAME), (REFERENCE, says == REFERENCE), (COMPARED, says == COMPARED)):
            share = over_people(votes, group["participant"])
            row |= {f"{name}_share": share.mean, f"{name}_low": share.low, f"{name}_high": share.high}
        row |= {"mean_plays": group["plays"].mean(), "median_answer_s": group["answer_s"].median()}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(SHARE_COLUMNS) if not rows else None)


SHARE_COLUMNS = ("network", "reference", "compared", "votes", "participants", "notice_share")
PREFERENCE, RATING = "preference", "rating"
DIFFERENCE_COLUMNS = ["question", "network", "reference", "compared", "participants", "sites", "difference", "low"]
DIFFERENCE_COLUMNS += ["high", "p_people", "p_sites", "p", "p_corrected", "is_shown"]


def differences(pairs: pd.DataFrame, rated: pd.DataFrame) -> pd.DataFrame:
    """The decisions of a study: on each network and for each pair of protocols, whether people prefer one (PREFERENCE:
    the share of votes for the compared one less that for the reference), and whether they rate one higher (RATING: the
    difference of ratings). `pairs` and `rated` are the tables of `pair_votes` and `ratings`.

    Pairs of protocols are those of `pairs`, or all that were rated if there are none. Columns: `difference`, the mean
    over participants of their own, with low and high; p_people and p_sites, the t tests over participants, and over
    sites; p, which is small only if the difference is one of other people and of other sites (`over_both`);
    p_corrected (Bonferroni's, over all rows); is_shown (p_corrected is below SIGNIFICANT_P). With fewer than
    LEAST_UNITS participants or sites, there is no p.
    """
    rows = []
    for (network, *pair), group in pairs.groupby(["network", "reference", "compared"], sort=False):
        prefers = (group["says"] == COMPARED).astype(float) - (group["says"] == REFERENCE)
        units = (prefers.groupby(group[unit]).mean() for unit in ("participant", "site"))
        rows.append([PREFERENCE, network, *pair, *over_both(*units)])
    questions = list(dict.fromkeys(zip(pairs["reference"], pairs["compared"], strict=True)))
    for network, group in rated.groupby("network", sort=False):
        protocols = list(dict.fromkeys(group["protocol"]))
        for reference, compared in questions or combinations(protocols, 2):
            if {reference, compared} <= set(protocols):
                of_pair = group[group["protocol"].isin([reference, compared])]
                units = (
                    _paired(of_pair, reference, compared, unit, other)
                    for unit, other in (("participant", "site"), ("site", "participant"))
                )
                rows.append([RATING, network, reference, compared, *over_both(*units)])
    table = pd.DataFrame(rows, columns=DIFFERENCE_COLUMNS[:-2])
    table["p_corrected"] = (len(table) * table["p"].astype(float)).clip(upper=1)
    return table.assign(is_shown=table["p_corrected"] < SIGNIFICANT_P)


def _paired(rated: pd.DataFrame, reference: str, compared: str, unit: str, other: str) -> "pd.Series[float]":
    """The difference of the ratings of two protocols for each `unit` (participant or site) that has both.

    A unit may have rated one protocol on other sites than the other; so the mean of each of the `other` (site or
    participant) over both protocols is subtracted first.
    """
    means = rated.pivot_table("rating", other, "protocol").reindex(columns=[reference, compared])
    centred = rated["rating"] - rated[other].map(means.mean(axis=1, skipna=False))
    of_unit = centred.groupby([rated[unit], rated["protocol"]]).mean().unstack()
    return (of_unit[compared] - of_unit[reference]).dropna()


def over_both(by_person: "pd.Series[float]", by_site: "pd.Series[float]") -> list[float]:
    """From the difference of each person and of each site, the columns of `differences` from participants to p.

    Either test alone errs if the other unit differs: over people, what two films differ in passes for a difference of
    protocols. People and sites may also both differ in what they prefer, so a third test adds the squares of both
    errors, with Satterthwaite's degrees of freedom (the quasi F ratio of Clark 1973, The language-as-fixed-effect
    fallacy). All three must reject, so p is the largest; the interval is the third one's.
    """
    people, sites = len(by_person), len(by_site)
    difference = float(by_person.mean()) if people else math.nan
    if min(people, sites) < LEAST_UNITS:
        return [people, sites, difference, *[math.nan] * 5]
    # Rounding may hide that all differences are equal.
    alone = [
        of_numbers(values.mean(), float(values.sem()) if np.ptp(values) > 1e-9 else 0.0, len(values))
        for values in (by_person, by_site)
    ]
    both = independent_difference(replace(alone[1], centre=np.zeros(())), alone[0])
    low, high = both.interval(CONFIDENCE)
    p_people, p_sites, p_both = (float(one.difference_p()) for one in (*alone, both))
    return [people, sites, difference, float(low), float(high), p_people, p_sites, max(p_people, p_sites, p_both)]


def opinion_scores(rated: pd.DataFrame, by: Sequence[str] = ("network", "protocol")) -> pd.DataFrame:
    """The mean opinion score of each network and protocol. Student's interval is over participants, each with the mean
    of their own ratings, since the ratings of one person are not independent."""
    rows = []
    for names, group in rated.groupby([*by], sort=False):
        by_person = group.groupby("participant")["rating"].mean()
        score = over_runs(by_person, CONFIDENCE, (float(LOWEST), float(HIGHEST)))
        rows.append(
            dict(zip(by, names, strict=True))
            | {"votes": len(group), "participants": len(by_person)}
            | {"score": score.mean, "low": score.low, "high": score.high}
            | {"deviation": group["rating"].std(), "median_answer_s": group["answer_s"].median()}
        )
    return pd.DataFrame(rows)


def variance(rated: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One-way analyses of variance of the ratings over the protocols, for each network, or site and network (`by`), as
    in the paper: over votes, so they decide nothing here. NaN if fewer than two protocols have two ratings."""
    rows = []
    for names, group in rated.groupby([*by], sort=False):
        samples = [of_protocol["rating"].to_numpy() for _, of_protocol in group.groupby("protocol", sort=False)]
        is_enough = len(samples) > 1 and all(len(sample) > 1 for sample in samples)
        scatters = any(sample.std() > 0 for sample in samples)
        test = stats.f_oneway(*samples) if is_enough and scatters else None
        rows.append(
            dict(zip(by, names, strict=True))
            | {"protocols": len(samples), "votes": len(group)}
            | {"f": float(test.statistic) if test else math.nan, "p": float(test.pvalue) if test else math.nan}
        )
    return pd.DataFrame(rows, columns=[*by, "protocols", "votes", "f", "p"])


def false_differences(votes: pd.DataFrame, key: Key) -> Estimate:
    """The share of votes on identical films that see a difference, with its interval (`over_people`)."""
    identical = pair_votes(votes, key, IDENTICAL)
    return over_people(identical["says"] != SAME, identical["participant"])


def clip_scores(rated: pd.DataFrame, key: Key) -> pd.DataFrame:
    """The mean rating of each clip, and the metrics of the run that it shows."""
    means = rated.groupby("clip", sort=False)["rating"].agg(["mean", "size"])
    rows = [
        {"clip": clip.name, "site": clip.site, "network": clip.network, "protocol": clip.sides[0].protocol}
        | {"votes": int(means.at[clip.name, "size"]), "score": float(means.at[clip.name, "mean"])}
        | dict(clip.sides[0].metrics)
        for clip in key.clips
        if clip.name in means.index
    ]
    return pd.DataFrame(rows)


def clip_preferences(pairs: pd.DataFrame, key: Key) -> pd.DataFrame:
    """The preference for each pair of films: the share that says the compared one loads faster, less the share that
    says the reference does. Also, for each of their metrics, the logarithm of the ratio (compared to reference)."""
    rows = []
    for clip in key.clips:
        says = pairs.loc[pairs["clip"] == clip.name, "says"]
        if says.empty:
            continue
        reference, compared = clip.sides
        logs = {
            name: math.log(compared.metrics[name] / value) if value > 0 and compared.metrics[name] > 0 else math.nan
            for name, value in reference.metrics.items()
            if name in compared.metrics
        }
        preference = float((says == COMPARED).mean() - (says == REFERENCE).mean())
        rows.append(
            {"clip": clip.name, "site": clip.site, "network": clip.network}
            | {"reference": reference.protocol, "compared": compared.protocol}
            | {"votes": len(says), "preference": preference, **logs}
        )
    return pd.DataFrame(rows)


def correlations(clips: pd.DataFrame, score: str, metrics: Sequence[str]) -> pd.DataFrame:
    """The correlation of `score` with each of the `metrics` over `clips`, on each network and over all: Pearson's r
    with its interval (Fisher), and Spearman's rho."""
    columns = [
        "network",
        "metric",
        "clips",
        "pearson",
        "pearson_low",
        "pearson_high",
        "pearson_p",
        "spearman",
        "spearman_p",
    ]
    if clips.empty:
        return pd.DataFrame(columns=columns)
    groups = [("", clips), *((str(name), group) for name, group in clips.groupby("network", sort=False))]
    rows = [
        {"network": network, "metric": metric, **_correlation(group[[metric, score]].dropna())}
        for network, group in (groups if len(groups) > 2 else groups[:1])
        for metric in metrics
        if metric in group
    ]
    return pd.DataFrame(rows, columns=columns)


def _correlation(values: pd.DataFrame) -> dict[str, float]:
    x, y = (values.iloc[:, place].to_numpy() for place in (0, 1))
    row: dict[str, float] = {"clips": len(values)}
    if len(values) < LEAST_CLIPS or not x.std() or not y.std():
        return row
    pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
    low, high = pearson.confidence_interval(CONFIDENCE) if len(values) > LEAST_CLIPS else (math.nan, math.nan)
    return row | {
        "pearson": float(pearson.statistic),
        "pearson_low": float(low),
        "pearson_high": float(high),
        "pearson_p": float(pearson.pvalue) if len(values) > LEAST_CLIPS - 1 else math.nan,
        "spearman": float(spearman.statistic),
        "spearman_p": float(spearman.pvalue),
    }


def metrics_of(key: Key) -> list[str]:
    """The metrics that the runs of all clips have. Raises EyelevelError if there are none."""
    common = [set(side.metrics) for clip in key.clips for side in clip.sides]
    if not common or not set.intersection(*common):
        raise EyelevelError(f"the clips of the study {key.study} have no metric in common")
    return [name for name in key.clips[0].sides[0].metrics if name in set.intersection(*common)]


def exclusions(participants: pd.DataFrame) -> Iterator[tuple[str, int]]:
    """How many participants are left out for each reason."""
    for reason in REASONS:
        yield reason, int((participants["reason"] == reason).sum())
