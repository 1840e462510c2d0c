"""Votes of a user study: what counts as a vote, whose votes count, and their results."""

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from analysis.runs import records
from analysis.user_study import results, settings
from analysis.user_study.clips import Clip, Key, Side
from analysis.user_study.section import decided, section
from analysis.user_study.votes import COLUMNS, Vote, append_vote, line, parse_vote, read_votes
from base.errors import EyelevelError
from base.files import write_json
from base.structure import unstructured

RULES = settings.load().rules


def side(protocol: str, si: float = 1000.0, delay_s: float = 0.0, film: str = "") -> Side:
    return Side(protocol, 1, film or f"runs/{protocol}/film.mp4", delay_s, {"si": si, "plt": 2 * si}, si)


KEY = Key(
    "5" * 12,
    "c",
    ("ratings", "pairs"),
    RULES,
    (
        Clip("pair1", "pairs", "measured", "s1", "lte", (side("tcp+", 2000), side("quic", 1000)), 3),
        Clip("pair2", "pairs", "measured", "s2", "lte", (side("tcp+", 1500), side("quic", 1400)), 3),
        Clip("late", "pairs", "delayed", "s1", "lte", (side("tcp+"), side("tcp+", delay_s=3)), 6),
        Clip("twins", "pairs", "identical", "s1", "lte", (side("tcp+"), side("tcp+")), 3),
        Clip("tcp", "ratings", "measured", "s1", "lte", (side("tcp+", 2000),), 3),
        Clip("quic", "ratings", "measured", "s1", "lte", (side("quic", 1000),), 3),
        Clip("plain", "ratings", "plain", "s1", "lte", (side("tcp+"),), 3),
        Clip("slow", "ratings", "delayed", "s1", "lte", (side("tcp+", delay_s=10),), 13),
    ),
)
VOTE = Vote(
    study=KEY.study,
    participant="a" * 32,
    group="lab",
    part="pairs",
    trial=1,
    trials=8,
    clip="pair1",
    swapped=False,
    answer="right",
    plays=1,
    answer_ms=4000,
    away_ms=0,
    still_ms=20,
    session_ms=60_000,
    layout="beside",
    width=1400,
    height=900,
    answered_at="2026-11-23T22:00:00.000Z",
)
# The answers of a participant who sees all differences.
GOOD = {
    "pair1": "right",
    "pair2": "right",
    "late": "left",
    "twins": "same",
    "tcp": "40",
    "quic": "55",
    "plain": "60",
    "slow": "20",
}


def session(person: int, changes: dict[str, str] | None = None, **of_all: Any) -> list[Vote]:
    """The votes of a participant."""
    answers = GOOD | (changes or {})
    parts = {clip.name: clip.part for clip in KEY.clips}
    return [
        replace(VOTE, participant=f"{person:032x}", trial=trial, clip=clip, part=parts[clip], answer=answer, **of_all)
        for trial, (clip, answer) in enumerate(answers.items(), start=1)
    ]


def table(*sessions: list[Vote]) -> pd.DataFrame:
    return pd.DataFrame([vars(vote) for votes in sessions for vote in votes])


@pytest.mark.parametrize(
    "change",
    [
        {"clip": "../../etc/passwd"},
        {"clip": "tcp"},
        {"answer": "quic"},
        {"answer": "40"},
        {"participant": "me"},
        {"group": "a,b"},
        {"trial": 9},
        {"plays": 0},
        {"away_ms": -1},
        {"answer_ms": 10**12},
        {"answered_at": "=1+1"},
        {"study": "6" * 12},
        {"swapped": "no"},
        {"width": 3.5},
        {"more": 1},
    ],
)
def test_what_is_no_vote_is_refused(change: dict[str, Any]) -> None:
    clips = KEY.by_name()
    assert parse_vote(vars(VOTE), clips, KEY.study) == VOTE
    with pytest.raises(EyelevelError, match="the vote"):
        parse_vote(vars(VOTE) | change, clips, KEY.study)


def test_a_torn_line_costs_no_other_vote(tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    first, second, third = session(1)[:3]
    append_vote(file, first)
    append_vote(file, second)
    file.write_text(file.read_text()[:-30])
    append_vote(file, third)
    # A file downloaded by a participant, with one vote repeated, and one of another study.
    other = ",".join(map(str, vars(replace(first, study="7" * 12)).values())).replace("False", "false")
    again = line(COLUMNS) + file.read_text().splitlines()[1] + "\n" + other + "\n"
    (tmp_path / "own.csv").write_text(again)
    read = read_votes(tmp_path, KEY)
    assert list(read.table["trial"]) == [1, 3]
    assert (read.broken, read.of_others, read.repeated) == (1, 1, 1)


def test_a_file_that_holds_no_votes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "grades.csv").write_text("name,grade\nme,1\n")
    with pytest.raises(EyelevelError, match=r"grades\.csv is not a file of votes"):
        read_votes(tmp_path, KEY)


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        (session(1), ""),
        (session(1)[:-1], "not finished"),
        (session(1, {"late": "right"}), "control failed"),
        (session(1, {"late": "same"}), "control failed"),
        (session(1, {"slow": "60"}), "control failed"),
        (session(1, {"twins": "left"}), ""),
        (session(1, away_ms=10_001), "away from the page"),
        (session(1, session_ms=25 * 60_000 + 1), "took too long"),
    ],
)
def test_who_counts(votes: list[Vote], reason: str) -> None:
    assert list(results.counted(table(votes), KEY).participants["reason"]) == [reason]


def test_a_film_that_stood_still_costs_a_vote_and_no_participant() -> None:
    who = results.counted(table([replace(vote, still_ms=1001 * (vote.trial == 2)) for vote in session(1)]), KEY)
    assert (len(who.votes), who.still) == (len(GOOD) - 1, 1)


@pytest.mark.parametrize(
    ("answer", "swapped", "says"),
    [
        ("left", False, "reference"),
        ("right", False, "compared"),
        ("left", True, "compared"),
        ("right", True, "reference"),
        ("same", True, "same"),
    ],
)
def test_a_side_is_that_of_the_film_that_was_there(answer: str, swapped: bool, says: str) -> None:
    assert results.answer_of({"answer": answer, "swapped": swapped}) == says


def test_shares_and_their_intervals() -> None:
    # 7 of 10 say that QUIC is faster, and 1 says that TCP+ is.
    answers = ["right"] * 7 + ["left"] + ["same"] * 2
    sessions = [session(person, {"pair1": answer, "pair2": "same"}) for person, answer in enumerate(answers)]
    pairs = results.pair_votes(results.counted(table(*sessions), KEY).votes, KEY)
    (row,) = results.shares(pairs[pairs["clip"] == "pair1"]).to_dict("records")
    assert (row["votes"], row["participants"], row["notice_share"], row["compared_share"]) == (10, 10, 0.8, 0.7)
    # Each participant answered "same" to the other pair. So eight of the ten noticed a difference in half of their
    # votes, and two in none: the mean is 0.4.
    (both,) = results.shares(pairs).to_dict("records")
    assert both["notice_share"] == 0.4
    half = 2.262157 * math.sqrt((8 * 0.1**2 + 2 * 0.4**2) / 9 / 10)
    assert (both["notice_low"], both["notice_high"]) == pytest.approx((0.4 - half, 0.4 + half), abs=1e-6)
    # Nobody notices a difference in the other pair. With a share of 31 %, this has a probability of 2.5 %.
    (none,) = results.shares(pairs[pairs["clip"] == "pair2"]).to_dict("records")
    assert (none["notice_low"], none["notice_high"]) == pytest.approx((0, 1 - 0.025**0.1))


def test_the_interval_of_a_share_holds_where_people_differ() -> None:
    """Wilson's interval of votes held in 78 % of such studies."""
    draw = np.random.default_rng(1)
    truth, people, votes = expit(draw.normal(0.5, 1, 100_000)).mean(), 30, 10
    held = 0
    for _ in range(300):
        notices = draw.random((people, votes)) < expit(draw.normal(0.5, 1, (people, 1)))
        names = np.repeat([f"{person:032x}" for person in range(people)], votes)
        share = results.over_people(pd.Series(notices.ravel()), pd.Series(names))
        held += share.low <= truth <= share.high
    assert held >= 0.93 * 300


def rated(
    draw: np.random.Generator, *, sites: int = 5, by: float = 0.0, clip_sd: float = 0.0, seen: float = 1.0
) -> pd.DataFrame:
    """The ratings of two protocols on each site by 30 people, who differ by 10, as sites do by 12. Each film differs by
    `clip_sd` for reasons of its own. Each film is `seen` with this probability."""
    people = 30
    clips = draw.normal(0, 12, (1, sites, 1)) + draw.normal(0, clip_sd, (1, sites, 2)) + by * np.array([0, 1])
    values = 40 + draw.normal(0, 10, (people, 1, 1)) + clips + draw.normal(0, 8, (people, sites, 2))
    person, site, protocol = (place.ravel() for place in np.indices(values.shape))
    table = pd.DataFrame(
        {
            "participant": person.astype(str),
            "site": site.astype(str),
            "network": "lte",
            "protocol": np.array(["tcp+", "quic"])[protocol],
            "rating": values.ravel(),
        }
    )
    return table[draw.random(len(table)) < seen].sort_values("protocol", ascending=False)


NO_PAIRS = pd.DataFrame(columns=["participant", "site", "network", "reference", "compared", "says"])


def decision(of_ratings: pd.DataFrame) -> dict[str, Any]:
    (row,) = records(results.differences(NO_PAIRS, of_ratings))
    return row


def test_a_difference_within_people_is_found_that_votes_hide() -> None:
    """A true difference of 3 points: the analysis of variance of votes finds it in 4 % of studies."""
    draw = np.random.default_rng(1)
    rows = [decision(rated(draw, by=3.0)) for _ in range(60)]
    assert np.mean([row["p_people"] < 0.01 for row in rows]) > 0.5
    many = [decision(rated(draw, by=3.0, sites=20)) for _ in range(20)]
    assert np.mean([row["is_shown"] for row in many]) > 0.7
    assert np.mean([row["difference"] for row in many]) == pytest.approx(3, abs=0.5)
    of_votes = [results.variance(rated(draw, by=3.0), ["network"])["p"].item() < 0.01 for _ in range(60)]
    assert np.mean(of_votes) < 0.2


def test_films_that_differ_by_themselves_are_no_difference_of_protocols() -> None:
    """The analysis of variance of votes finds one in 13 % of such studies, and the test over people in 47 %."""
    draw = np.random.default_rng(1)
    rows = [decision(rated(draw, clip_sd=5.0)) for _ in range(80)]
    assert np.mean([row["p_people"] < 0.01 for row in rows]) > 0.3
    assert np.mean([row["is_shown"] for row in rows]) <= 0.013


@pytest.mark.parametrize(("person_sd", "site_sd", "sites"), [(0.0, 7.0, 5), (8.0, 5.0, 12), (6.0, 5.0, 20), (0, 0, 5)])
def test_a_difference_is_one_of_other_people_and_other_sites(person_sd: float, site_sd: float, sites: int) -> None:
    """People and sites differ in what they prefer, and on average nothing differs. If two tests must both reject,
    the larger p value alone is below 1 % in up to 3.5 % of such studies."""
    draw = np.random.default_rng(1)
    wrong = 0
    for _ in range(1000):
        values = (
            draw.normal(0, person_sd, (30, 1)) + draw.normal(0, site_sd, (1, sites)) + draw.normal(0, 11, (30, sites))
        )
        wrong += results.over_both(pd.Series(values.mean(axis=1)), pd.Series(values.mean(axis=0)))[-1] < 0.01
    assert wrong <= 0.013 * 1000


def test_a_study_in_which_people_see_different_films_is_paired_too() -> None:
    """Each film is seen by half of the people: the difference is neither that of the sites nor that of the people."""
    draw = np.random.default_rng(1)
    row = decision(rated(draw, by=5.0, sites=20, seen=0.5))
    assert (row["participants"], row["sites"]) == (30, 20)
    assert row["low"] < 5 < row["high"] and row["high"] - row["low"] < 8


def test_differences_by_hand() -> None:
    """Six people, five sites, and a difference of 10, 11, … 15 points of each person on all sites."""
    one = pd.DataFrame(
        [
            {"participant": str(person), "site": str(site), "network": "lte", "protocol": protocol}
            | {"rating": 30.0 + site + 7 * person + (10 + person) * (protocol == "quic")}
            for person, site, protocol in itertools.product(range(6), range(5), ("tcp+", "quic"))
        ]
    )
    row = decision(one)
    assert (row["difference"], row["participants"], row["sites"]) == (12.5, 6, 5)
    error = np.std(range(6), ddof=1) / math.sqrt(6)
    assert row["p_people"] == pytest.approx(2 * stats.t.sf(12.5 / error, 5))
    # All sites have the same difference: five equal signs have a probability of 1/16.
    assert row["p_sites"] == row["p"] == row["p_corrected"] == 1 / 16
    assert not row["is_shown"]
    assert row["low"] == pytest.approx(12.5 - stats.t.ppf(0.975, 5) * error)
    few = decision(one[one["site"] != "0"])
    assert few["sites"] == 4 and math.isnan(few["p"]) and not few["is_shown"]


def test_a_preference_is_shown_over_people_and_sites() -> None:
    """Three in four of the votes of each person and on each site say that QUIC is faster, and one says that TCP+ is."""
    draw = np.random.default_rng(1)
    people, sites = 40, 10
    pairs = pd.DataFrame(
        [
            {"participant": str(person), "site": str(site), "network": "lte", "reference": "tcp+", "compared": "quic"}
            | {"says": "compared" if draw.random() < 0.75 else "reference"}
            for person, site in itertools.product(range(people), range(sites))
        ]
    )
    none = pd.DataFrame(columns=["participant", "site", "network", "protocol", "rating"])
    (row,) = results.differences(pairs, none).to_dict("records")
    assert row["question"] == "preference" and row["is_shown"]
    assert row["difference"] == pytest.approx(0.5, abs=0.1) and row["low"] < 0.5 < row["high"]
    said = decided(row)
    assert said.startswith("QUIC is preferred to TCP+ by ") and "corrected p = " in said
    opposite = decided(row | {"difference": -0.1, "low": -0.3, "high": 0.1, "is_shown": False, "p_corrected": 0.2})
    assert opposite == "Neither is shown to be preferred: TCP+ by 10 points (-10 to 30; corrected p = 0.20)."


def test_opinion_scores_are_over_people() -> None:
    sessions = [
        session(person, {"tcp": str(tcp), "quic": str(quic)})
        for person, (tcp, quic) in enumerate([(20, 50), (30, 70), (40, 60)])
    ]
    rated = results.ratings(results.counted(table(*sessions), KEY).votes, KEY)
    scores = results.opinion_scores(rated).set_index("protocol")
    assert (scores.at["tcp+", "score"], scores.at["quic", "score"]) == (30, 60)
    assert scores.at["tcp+", "low"] == pytest.approx(10)  # 30 - 4.303 * 10 / sqrt(3) is below the scale
    (test,) = results.variance(rated, ["network"]).to_dict("records")
    # Between the protocols, the sum of squares is 3 * (15^2 + 15^2), with 1 degree of freedom; within the protocols, it
    # is 400, with 4 degrees.
    assert test["f"] == pytest.approx(13.5)
    assert 0.02 < test["p"] < 0.022


def test_votes_go_with_metrics() -> None:
    clips = pd.DataFrame(
        {"network": ["lte"] * 4, "score": [60.0, 50, 40, 10], "si": [1000.0, 2000, 3000, 4000], "plt": [1.0] * 4}
    )
    si, plt = results.correlations(clips, "score", ["si", "plt"]).to_dict("records")
    assert (si["spearman"], round(si["pearson"], 4)) == (-1, -0.9562)
    assert si["pearson_low"] < -0.9562 < si["pearson_high"] < 1
    assert math.isnan(plt["pearson"])


@pytest.mark.slow
def test_the_report_says_who_took_part_and_what_they_noticed(tmp_path: Path) -> None:
    assert section(tmp_path) is None
    kit = tmp_path / "user-study"
    (kit / "votes").mkdir(parents=True)
    write_json(kit / "key.json", unstructured(KEY))
    assert section(tmp_path) is None
    people = [
        session(1),
        session(2, {"pair2": "same"}),
        session(3, {"late": "same"}),
        session(4, {"twins": "left"})[:7],
    ]
    for vote in itertools.chain(*people):
        append_vote(kit / "votes" / "votes.csv", vote)
    report = section(tmp_path)
    assert report is not None
    lead, took_part, controls, *_ = report.paragraphs
    assert "On LTE, people notice a difference between TCP+ and QUIC in 75.0 % (0.0 % to 100.0 %) of their" in lead
    assert "Whether TCP+ or QUIC is preferred is not decided: 2 people and 2 sites are too few (5 of each" in lead
    assert "mean opinion scores, of 10 to 70, are TCP+ 40 and QUIC 55" in lead
    assert "ANOVA" not in lead and "binomial" not in lead
    assert took_part == "4 people took part, of whom 2 count (left out: 1 not finished, 1 control failed)."
    assert controls.startswith("Between identical films, people see a difference in 0.0 % (0.0 % to 84.2 %) of their")
    for figure in report.figures:
        figure.write(tmp_path)
    assert {"user_study_shares", "user_study_scores", "user_study_metrics"} == {
        path.stem for path in tmp_path.glob("*.png")
    }


def test_votes_that_are_none_are_said(tmp_path: Path) -> None:
    kit = tmp_path / "user-study"
    (kit / "votes").mkdir(parents=True)
    write_json(kit / "key.json", unstructured(KEY))
    (kit / "votes" / "votes.csv").write_text(line(COLUMNS) + f"{KEY.study},me\nnonsense\n")
    report = section(tmp_path)
    assert report is not None
    assert report.paragraphs[0] == "No vote counts so far."
    lines = "1 line of the files of votes is no vote. 1 line of the files of votes is on another study."
    assert report.paragraphs[1] == f"0 people took part, of whom 0 count. {lines}"
