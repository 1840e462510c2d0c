"""Statistics of votes: who counts, shares, mean opinion scores, and the correlation of both with the measured metrics.

All functions take and return tables; `Key` says what each clip shows.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.runs import records
from analysis.statistics.intervals import over_runs
from analysis.user_study.clips import DELAYED, IDENTICAL, MEASURED, PLAIN, Clip, Key
from analysis.user_study.settings import HIGHEST, LOWEST, PAIRS, RATINGS
from analysis.user_study.votes import LEFT, SAME
from base.errors import EyelevelError

CONFIDENCE = 0.95
# The threshold of the analysis of variance, as in the paper.
SIGNIFICANT_P = 0.01
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


def wilson(count: int, of: int) -> tuple[float, float, float]:
    """The share `count` / `of` with Wilson's interval (1927); NaN if `of` is 0."""
    if not of:
        return math.nan, math.nan, math.nan
    low, high = proportion_confint(count, of, alpha=1 - CONFIDENCE, method="wilson")
    return count / of, float(low), float(high)


def shares(pairs: pd.DataFrame, by: Sequence[str] = ("network", "reference", "compared")) -> pd.DataFrame:
    """For each network and pair of protocols: the shares of votes that notice a difference, that say the reference
    loads faster, and that say the compared one does, with Wilson's intervals, which treat votes as independent.

    `people_low`, `people_high`: Student's interval over participants of the share that notices a difference, where each
    participant has the share of their own votes. `preference_p`: among votes that notice one, the two-sided binomial
    test that both answers are equally likely.
    """
    rows = []
    for names, group in pairs.groupby([*by], sort=False):
        row: dict[str, Any] = dict(zip(by, names, strict=True)) | {
            "votes": len(group),
            "participants": group["participant"].nunique(),
        }
        counts = group["says"].value_counts()
        reference, compared = int(counts.get(REFERENCE, 0)), int(counts.get(COMPARED, 0))
        for name, count in (("notice", reference + compared), (REFERENCE, reference), (COMPARED, compared)):
            row |= dict(zip((f"{name}_share", f"{name}_low", f"{name}_high"), wilson(count, len(group)), strict=True))
        by_person = (group["says"] != SAME).groupby(group["participant"]).mean()
        over_people = over_runs(by_person, CONFIDENCE, (0.0, 1.0))
        row |= {"people_low": over_people.low, "people_high": over_people.high}
        noticing = reference + compared
        row["preference_p"] = stats.binomtest(compared, noticing).pvalue if noticing else math.nan
        row |= {"mean_plays": group["plays"].mean(), "median_answer_s": group["answer_s"].median()}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(SHARE_COLUMNS) if not rows else None)


SHARE_COLUMNS = ("network", "reference", "compared", "votes", "participants", "notice_share", "preference_p")


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
    in the paper. NaN if fewer than two protocols have two ratings."""
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


def false_differences(votes: pd.DataFrame, key: Key) -> tuple[float, float, float]:
    """The share of votes on identical films that see a difference, with Wilson's interval."""
    identical = pair_votes(votes, key, IDENTICAL)
    return wilson(int((identical["says"] != SAME).sum()), len(identical))


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
    groups = [("", clips), *((str(name), behind) for name, behind in clips.groupby("network", sort=False))]
    rows = [
        {"network": network, "metric": metric, **_correlation(behind[[metric, score]].dropna())}
        for network, behind in (groups if len(groups) > 2 else groups[:1])
        for metric in metrics
        if metric in behind
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
