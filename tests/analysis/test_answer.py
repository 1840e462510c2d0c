"""The answer for one site in one sentence: each case from a simulated campaign with known truth."""

import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

import pandas as pd
import pytest
from support.axe import accessible
from support.browser import Browser
from support.user_studies import filmed_campaign

from analysis import hypotheses
from analysis.answer import MILESTONE_COLUMNS, NetworkAnswer, answers, milestones
from analysis.report.answer import basis, cards, in_words, network_words, page_facts, with_commands, write_answer
from analysis.report.answer_sentences import amount, command_for_more, ends, headline, how_sure, why
from analysis.runs import CampaignTable, load, records, rows_of
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from base.errors import EyelevelError
from dataset.site_facts import SiteFacts
from dataset.table import read_document, write_document
from eyelevel.simulate import Truth, write
from tuning import networks

DECLARED = hypotheses.DECLARED.with_name("answer.toml")
QUESTION = hypotheses.load(DECLARED)
LTE = NetworkAnswer("lte", FASTER, -0.105, -0.12, -0.09, 0.05, reference_ms=1700, pairs=20, attempts=40)


class Simulated(Protocol):
    """Makes a simulated campaign on DSL.

    The arguments are by which share QUIC's times differ, the number of runs, and by how much runs scatter.
    """

    def __call__(self, effect: float, runs: int = 20, scatter: float = 0.02) -> CampaignTable: ...


@pytest.fixture
def simulated(tmp_path: Path) -> Simulated:
    """See `Simulated`."""

    def made(effect: float, runs: int = 20, scatter: float = 0.02) -> CampaignTable:
        truth = Truth(1, ("dsl",), ("tcp+", "quic"), runs, {"quic": effect}, noise_sd=scatter)
        return load(write(tmp_path / "simulated", truth, DECLARED))

    return made


def sentence(campaign: CampaignTable) -> str:
    return headline("gnu.org", answers(campaign, QUESTION))


def test_a_page_that_is_seen_sooner_is_said_to_be_so_with_time_and_interval(simulated: Simulated) -> None:
    (answer,) = answers(simulated(-0.1), QUESTION)
    assert answer.verdict == FASTER
    assert -0.13 < answer.low < -0.1 < answer.high < -0.07
    assert (answer.pairs, answer.attempts) == (20, 40)
    exact = replace(answer, gain=-0.105, low=-0.12, high=-0.09, reference_ms=1700)
    expected = "For gnu.org, HTTP/3 in place of HTTP/2 would show the page 10 % sooner (180 ms; 9 to 12 %) on DSL."
    assert headline("gnu.org", [exact]) == expected


def test_a_page_that_is_seen_later_is_said_to_be_so(simulated: Simulated) -> None:
    text = sentence(simulated(0.1))
    assert text.startswith("For gnu.org, HTTP/3 in place of HTTP/2 would show the page ")
    assert " % later (" in text and text.endswith(" %) on DSL.")


def test_no_difference_is_said_only_where_an_equivalence_test_shows_it(simulated: Simulated) -> None:
    expected = "For gnu.org, HTTP/3 in place of HTTP/2 would make no difference on DSL (less than 5 % either way)."
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
    low, high = (f"{100 * abs(end):.0f} %" for end in (by_network[0].low, by_network[0].high))
    assert text.endswith(f"on DSL (it may be between {low} sooner and {high} later).")
    assert 10 < by_network[0].more_runs < 400
    more = f"About {by_network[0].more_runs:.0f} runs more of each would show a difference of 5 % if there is one: "
    command = f"make answer SITE=site-01 CAMPAIGN=simulated RUNS={6 + math.ceil(by_network[0].more_runs)}"
    assert f"{more}{command}" in how_sure(by_network, campaign, QUESTION)[0]


@pytest.mark.parametrize(
    ("protocol", "said"), [("quic", "4 of 20 loads over HTTP/3 failed, and 0 of 20 over HTTP/2"), ("", "")]
)
def test_loads_that_fail_over_one_protocol_stand_in_the_sentence(
    simulated: Simulated, protocol: str, said: str
) -> None:
    campaign = simulated(-0.1)
    runs = campaign.runs
    fails = (runs["run"] % 5 == 0) & runs["protocol"].isin([protocol] if protocol else ["tcp+", "quic"])
    runs = runs.assign(valid=runs["valid"] & ~fails, reason=runs["reason"].mask(fails, "over_time: it took 120 s"))
    text = sentence(replace(campaign, runs=runs))
    assert "% sooner (" in text
    assert text.endswith(f"; but on DSL {said}." if said else "%) on DSL.")


def test_too_few_runs_are_not_given_an_interval(simulated: Simulated) -> None:
    campaign = simulated(-0.2, 1, 0.02)
    assert sentence(campaign).endswith("would show the page sooner: on DSL (1 load of each cannot tell).")
    assert "too few" in how_sure(answers(campaign, QUESTION), campaign, QUESTION)[0]


def test_what_is_open_always_has_a_command_for_more_runs(simulated: Simulated) -> None:
    campaign = simulated(0.0, 6, 0.1)
    (answer,) = answers(campaign, QUESTION)
    begin = "make answer SITE=site-01 CAMPAIGN=simulated RUNS="
    for more, runs in ((7.0, 13), (math.nan, 12), (math.inf, 12)):
        one = replace(answer, more_runs=more)
        assert how_sure([one], campaign, QUESTION)[0].endswith(f"{begin}{runs}")
        assert command_for_more([one], campaign) == f"{begin}{runs}"
    assert command_for_more([replace(answer, verdict=FASTER)], campaign) is None


def test_rejected_attempts_are_counted_only_if_there_are_any(simulated: Simulated) -> None:
    campaign = simulated(-0.1, 6)
    (answer,) = answers(campaign, QUESTION)
    assert basis([answer]) == "6 loads of each protocol on 1 network"
    two = replace(answer, attempts=14, rejected=2)
    assert basis([two]) == "6 loads of each protocol on 1 network; 2 of 14 attempts were rejected"


def test_a_verdict_of_two_pairs_of_loads_says_how_wide_its_interval_is(simulated: Simulated) -> None:
    campaign = simulated(-0.5, 2, 0.005)
    (answer,) = answers(campaign, QUESTION)
    assert answer.verdict == FASTER and answer.high - answer.low > 0.02
    assert f"; {ends(answer.low, answer.high)}) on DSL." in sentence(campaign)


def test_loads_that_do_not_count_answer_nothing_and_are_told_with_their_reasons(tmp_path: Path) -> None:
    truth = Truth(1, ("dsl",), ("tcp+", "quic"), 6, excluded={"quic": 1.0})
    campaign = load(write(tmp_path / "excluded", truth, DECLARED))
    expected = "For gnu.org, there is no answer on HTTP/3 in place of HTTP/2: no pair of loads counts on DSL."
    assert sentence(campaign) == expected
    text = how_sure(answers(campaign, QUESTION), campaign, QUESTION)[0]
    assert text.startswith("On DSL: no pair of loads counts, of 12 attempts.")
    assert "Rejected: 6 of 12 attempts (6 x load_finished" in text


def test_networks_stand_in_one_sentence() -> None:
    by_network = [
        LTE,
        replace(LTE, network="dsl", verdict=SLOWER, gain=0.021, low=0.02, high=0.022),
        replace(LTE, network="fibre", verdict=EQUIVALENT),
        replace(LTE, network="mss", verdict=NOT_DECIDED, low=-0.02, high=0.05),
        NetworkAnswer("da2gc", NOT_DECIDED, attempts=6),
    ]
    assert headline("gnu.org", by_network) == (
        "For gnu.org, HTTP/3 in place of HTTP/2 would show the page 10 % sooner (180 ms; 9 to 12 %) on LTE and 2.1 % "
        "later (36 ms; 2.0 to 2.2 %) on DSL, and make no difference on fibre "
        "(less than 5 % either way); it is not decided on MSS (it may be between 2 % sooner and 5 % later); no "
        "pair of loads counts on DA2GC."
    )


def test_an_interval_that_reaches_beyond_none_is_not_said_to_be_of_one_direction() -> None:
    # An earlier look decided that QUIC is faster. The interval over all loads is wider, and includes 0.
    wide = replace(LTE, gain=-0.04, low=-0.09, high=0.01)
    expected = "show the page 4 % sooner (68 ms; between 9 % sooner and 1 % later) on LTE."
    assert headline("gnu.org", [wide]).endswith(expected)
    assert in_words(wide) == ("4 % sooner", "68 ms; between 9 % sooner and 1 % later; 20 loads of each")


def test_what_is_probable_and_not_certain_is_said_to_be_so() -> None:
    # The interval, which is valid for one network by itself, excludes 0. The test is corrected for all networks, and
    # does not decide.
    unsure = replace(LTE, verdict=NOT_DECIDED, low=-0.09, high=-0.01)
    expected = "on LTE (probably 1 to 9 % sooner, which is not certain enough)."
    assert headline("gnu.org", [unsure]).endswith(expected)


@pytest.mark.parametrize(
    ("difference_ms", "text"),
    [
        (-0.3, "less than 1 ms"),
        (7.4, "7 ms"),
        (99.4, "99 ms"),
        (-178.5, "180 ms"),
        (994, "990 ms"),
        (996, "1.0 s"),
        (2345, "2.3 s"),
        (9960, "10 s"),
        (14321, "14 s"),
    ],
)
def test_times_have_no_more_digits_than_are_known(difference_ms: float, text: str) -> None:
    assert amount(difference_ms) == text


def test_the_chance_of_a_wrong_word_grows_with_networks_that_came_later(simulated: Simulated) -> None:
    campaign = simulated(-0.1)
    by_network = [*answers(campaign, QUESTION), replace(LTE, network="lte")]
    assert (
        "are wrong with a probability of at most 5 %, interim looks included"
        in how_sure(by_network, campaign, QUESTION)[2]
    )
    later = replace(QUESTION, added_networks={"lte": "2026-02-01T00:00:00+0000"})
    text = how_sure(by_network, campaign, later)[2]
    assert "are wrong with a probability of at most 10 %, interim looks included" in text
    assert "(added to the campaign later, with a correction of its own: LTE)" in text


def test_a_difference_that_ended_the_loads_early_is_told_to_be_probably_smaller(tmp_path: Path) -> None:
    truth = Truth(1, ("dsl",), ("tcp+", "quic"), 10, {"quic": -0.06}, noise_sd=0.02)
    folder = write(tmp_path / "early", truth, DECLARED)
    document = read_document(folder)
    assert document
    write_document(folder, replace(document, settings=replace(document.settings, runs=31, auto=True)))
    campaign = load(folder)
    (answer,) = answers(campaign, QUESTION)
    assert answer.verdict == FASTER
    assert answer.gain < answer.shrunken < 0
    rather = amount(answer.shrunken * answer.reference_ms)
    assert f"expect rather {100 * abs(answer.shrunken):.0f} % ({rather})." in how_sure([answer], campaign, QUESTION)[0]


def test_the_page_says_one_number_of_one_thing(simulated: Simulated) -> None:
    campaign = simulated(-0.1, 7, 0.2)
    (answer,) = answers(campaign, QUESTION)
    (si,) = records(rows_of(milestones(campaign, QUESTION), metric="si"))
    assert si["typical_reference"] == pytest.approx(answer.reference_ms)
    assert si["difference"] == pytest.approx(answer.difference_ms)
    assert [si["low"], si["high"]] == pytest.approx(
        [answer.low * answer.reference_ms, answer.high * answer.reference_ms], rel=1e-6
    )


def test_why_says_how_much_of_the_difference_is_there_at_the_first_byte() -> None:
    def texts(first: tuple[float, float, float], seen: float, answer: NetworkAnswer = LTE) -> str:
        rows = [
            ("lte", "ttfb", 200, 200 + first[0], *first),
            ("lte", "si", 1700, 1700 + seen, seen, seen - 9, seen + 9),
        ]
        table = pd.DataFrame(rows, columns=MILESTONE_COLUMNS)
        (text,) = why([answer], table, {"lte": 74.0}.get)
        return text

    assert texts((-72, -80, -60), -180) == (
        "On LTE, the first byte of the page arrives 72 ms sooner over HTTP/3; a round trip takes 74 ms. So about 40 "
        "% of the difference exists before the page begins to arrive, from the handshakes; the rest arises while its "
        "parts are loaded."
    )
    assert "it comes from the handshakes" in texts((-72, -80, -60), -75)
    assert "arises after that" in texts((-72, -80, -60), 100)
    assert texts((-5, -20, 10), -180) == "On LTE, a difference in the first byte is not shown (-20 to +10 ms)."
    undecided = replace(LTE, verdict=NOT_DECIDED)
    assert texts((-72, -80, -60), -180, undecided).endswith("a round trip takes 74 ms.")


def test_commands_in_sentences_look_like_commands() -> None:
    text = "More <b>: make answer SITE=a.example RUNS=31"
    assert with_commands(text) == "More &lt;b&gt;: <code>make answer SITE=a.example RUNS=31</code>"


@pytest.mark.parametrize("excluded", [{"quic": 1.0}, {"quic": 1.0, "tcp+": 1.0}])
def test_a_page_without_any_load_that_counts_says_so(tmp_path: Path, excluded: dict[str, float]) -> None:
    truth = Truth(1, ("dsl", "lte"), ("tcp+", "quic"), 6, excluded=excluded)
    folder = write(tmp_path / "nothing", truth, DECLARED)
    text, page, _ = write_answer(folder, QUESTION, [], has_report=False)
    assert text.endswith("no pair of loads counts on DSL and LTE.")
    html = page.read_text()
    assert html.count("<strong>No answer</strong>") == 2
    assert "There is no report, since no load counts." in html


def test_another_question_has_no_such_answer(simulated: Simulated) -> None:
    with pytest.raises(EyelevelError, match="was begun with another question"):
        answers(simulated(-0.1), hypotheses.load())


def test_a_network_is_described_for_who_does_not_know_its_name() -> None:
    known = networks.load()
    assert network_words(asdict(known["lte"])) == "10.5 Mbit/s down, 2.8 up, a round trip of 74 ms"
    assert network_words(asdict(known["mss"])).startswith("1.89 Mbit/s down, 1.89 up, a round trip of 760 ms, 6 % of")


def test_hosts_of_others_are_told_since_the_answer_changes_them_too(simulated: Simulated) -> None:
    campaign = simulated(-0.1)
    assert page_facts(campaign, "site-01") == []
    facts = asdict(SiteFacts(91, 1_840_000, 12, 14, 5, 1, "https://a.example/"))
    write_document(campaign.folder, replace(campaign.document, site_facts={"site-01": facts}))
    of_page, of_others = page_facts(load(campaign.folder), "site-01")
    assert of_page == "The page: 91 files of 1.8 MB from 14 hosts on 12 servers."
    assert of_others.startswith("5 of its 14 hosts are under another domain than the page.")


@pytest.mark.slow
def test_the_films_of_typical_loads_stand_below_each_other_at_the_same_times(tmp_path: Path) -> None:
    campaign = load(filmed_campaign(tmp_path / "filmed"))
    (card,) = cards(campaign, "site-01", [replace(LTE, network="dsl")])
    assert [strip.name for strip in card.strips] == ["HTTP/2", "HTTP/3"]
    over_tcp, over_quic = card.strips
    assert [time for time, _, _ in over_tcp.pictures] == [time for time, _, _ in over_quic.pictures]
    # Painted after 700 ms and after 300 ms.
    assert [complete for _, complete, _ in over_tcp.pictures] == [0] * 8 + [100]
    assert [complete for _, complete, _ in over_quic.pictures] == [0] * 3 + [100] * 6
    assert (over_tcp.first_complete, over_quic.first_complete) == (8, 3)
    # A narrow screen shows the first picture and those on which either load has changed.
    assert [place for place, is_new in enumerate(over_tcp.is_new) if is_new] == [0, 3, 8]
    assert over_quic.is_new == over_tcp.is_new
    assert all(
        picture.startswith("data:image/jpeg;base64,") for strip in card.strips for _, _, picture in strip.pictures
    )


def test_a_campaign_of_several_sites_has_no_such_answer(tmp_path: Path) -> None:
    campaign = load(write(tmp_path / "two", Truth(2, ("dsl",), ("tcp+", "quic"), 2), DECLARED))
    with pytest.raises(EyelevelError, match="one sentence cannot answer it"):
        answers(campaign, QUESTION)


@pytest.mark.needs_axe
def test_the_page_begins_with_the_sentence_and_everybody_can_read_it(browser: Browser, tmp_path: Path) -> None:
    campaign = load(filmed_campaign(tmp_path / "filmed"))
    text, page, _ = write_answer(campaign.folder, QUESTION, ["gnu: <b>only half</b> of it is used"], has_report=True)
    assert text == sentence(campaign).replace("gnu.org", "site-01")
    # The page is sent to others without its folder.
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)', page.read_text()))
    assert accessible(browser, page.as_uri()) == []
    assert browser.run("return document.querySelector('h1').innerText") == text
    assert browser.run("return document.querySelector('.warnings li').innerText").startswith("gnu: <b>only half</b>")
