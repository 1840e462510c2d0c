"""The answer for one site in a sentence: each case from a simulated campaign of which the truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from support.axe import accessible
from support.browser import Browser

from analysis import hypotheses
from analysis.answer import NetworkAnswer, answers, headline, how_sure
from analysis.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.report.answer import write_answer
from analysis.runs import CampaignTable, load
from analysis.simulate import Truth, write
from base.errors import EyelevelError

QUESTION = hypotheses.load(hypotheses.DECLARED.with_name("answer.toml"))
LTE = NetworkAnswer("lte", FASTER, -0.105, -0.12, -0.09, 0.05, is_small=False, reference_ms=1700, pairs=20, attempts=40)


class Simulated(Protocol):
    """Makes a campaign behind DSL: how QUIC's times differ, how many runs there are, and how much they scatter."""

    def __call__(self, effect: float, runs: int = 20, scatter: float = 0.02) -> CampaignTable: ...


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    """See `Simulated`."""

    def made(effect: float, runs: int = 20, scatter: float = 0.02) -> CampaignTable:
        truth = Truth(1, ("dsl",), ("tcp+", "quic"), runs, {"quic": effect}, noise_sd=scatter)
        return load(write(tmp_path / "simulated", truth))

    return made


def sentence(campaign: CampaignTable) -> str:
    return headline("gnu.org", answers(campaign, QUESTION))


def test_a_page_that_is_seen_sooner_is_said_to_be_so_with_time_and_interval(simulated: Simulated) -> None:
    (answer,) = answers(simulated(-0.1), QUESTION)
    assert answer.verdict == FASTER
    assert -0.13 < answer.low < -0.1 < answer.high < -0.07
    assert (answer.pairs, answer.attempts) == (20, 40)
    exact = replace(answer, gain=-0.105, low=-0.12, high=-0.09, reference_ms=1700)
    expected = "For gnu.org, HTTP/3 in place of HTTP/2 would show the page 180 ms (9 to 12 %) sooner behind DSL."
    assert headline("gnu.org", [exact]) == expected


def test_a_page_that_is_seen_later_is_said_to_be_so(simulated: Simulated) -> None:
    text = sentence(simulated(0.1))
    assert text.startswith("For gnu.org, HTTP/3 in place of HTTP/2 would show the page ")
    assert text.endswith(" %) later behind DSL.")


def test_no_difference_is_said_only_where_an_equivalence_test_shows_it(simulated: Simulated) -> None:
    expected = "For gnu.org, HTTP/3 in place of HTTP/2 would make no difference behind DSL (less than 5 % either way)."
    assert sentence(simulated(0.0)) == expected
    assert "no difference" not in sentence(simulated(0.0, 6, 0.2))


def test_what_is_not_decided_says_between_what_it_lies_and_what_would_decide_it(simulated: Simulated) -> None:
    campaign = simulated(0.0, 6, 0.1)
    by_network = answers(campaign, QUESTION)
    assert by_network[0].low < 0 < by_network[0].high
    text = headline("gnu.org", by_network)
    assert text.startswith(
        "For gnu.org, it is not decided whether HTTP/3 in place of HTTP/2 would show the page sooner: "
    )
    low, high = (f"{100 * end:+.0f}" for end in (by_network[0].low, by_network[0].high))
    assert text.endswith(f"behind DSL (the difference is between {low} and {high} %; negative is sooner).")
    more = f"about {by_network[0].more_runs:.0f} runs more of each would show a difference of 5 % if there is one."
    assert more in how_sure(by_network, campaign, QUESTION)[1]
    assert 10 < by_network[0].more_runs < 400


def test_too_few_runs_are_not_given_an_interval(simulated: Simulated) -> None:
    campaign = simulated(-0.2, 1, 0.02)
    assert sentence(campaign).endswith("would show the page sooner: behind DSL (1 pair of loads cannot tell).")
    assert "too few" in how_sure(answers(campaign, QUESTION), campaign, QUESTION)[1]


def test_loads_that_do_not_count_answer_nothing_and_are_told_with_their_reasons(tmp_path: Path) -> None:
    truth = Truth(1, ("dsl",), ("tcp+", "quic"), 6, excluded={"quic": 1.0})
    campaign = load(write(tmp_path / "excluded", truth))
    expected = "For gnu.org, there is no answer on HTTP/3 in place of HTTP/2; behind DSL no pair of loads counts."
    assert sentence(campaign) == expected
    text = how_sure(answers(campaign, QUESTION), campaign, QUESTION)[1]
    assert text.startswith("Behind DSL: 0 pairs of loads count, of 12 attempts.")
    assert "Not counted: 6 x load_finished" in text


def test_networks_stand_in_one_sentence() -> None:
    by_network = [
        LTE,
        replace(LTE, network="dsl", verdict=SLOWER, gain=0.021, low=0.02, high=0.022, is_small=True),
        replace(LTE, network="fibre", verdict=EQUIVALENT),
        replace(LTE, network="mss", verdict=NOT_DECIDED, low=-0.02, high=0.05),
        NetworkAnswer("da2gc", NOT_DECIDED, attempts=6),
    ]
    assert headline("gnu.org", by_network) == (
        "For gnu.org, HTTP/3 in place of HTTP/2 would show the page 180 ms (9 to 12 %) sooner behind LTE and 36 ms "
        "(2.0 to 2.2 %) later behind DSL, which is less than the 5 % that count, and make no difference behind fibre "
        "(less than 5 % either way); it is not decided behind MSS (the difference is between -2 and +5 %; negative is "
        "sooner); behind DA2GC no pair of loads counts."
    )


def test_a_campaign_of_several_sites_has_no_such_answer(tmp_path: Path) -> None:
    campaign = load(write(tmp_path / "two", Truth(2, ("dsl",), ("tcp+", "quic"), 2)))
    with pytest.raises(EyelevelError, match="one sentence cannot answer it"):
        answers(campaign, QUESTION)


@pytest.mark.needs_axe
def test_the_page_begins_with_the_sentence_and_everybody_can_read_it(browser: Browser, simulated: Simulated) -> None:
    campaign = simulated(-0.1)
    text, page = write_answer(campaign.folder, QUESTION, ["gnu: <b>only half</b> of it is used"], has_report=True)
    assert text == sentence(campaign).replace("gnu.org", "site-01")
    assert accessible(browser, page.as_uri()) == []
    assert browser.run("return document.querySelector('h1').innerText") == text
    assert browser.run("return document.querySelector('.warnings li').innerText").startswith("gnu: <b>only half</b>")
