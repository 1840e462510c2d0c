"""The sentences with which a report ends on the terminal say what is true of campaigns of known truth."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import Conclusion, conclusion, findings_of
from analysis.report.warnings import POST_HOC
from analysis.runs import CampaignTable, load
from eyelevel.simulate import Truth, write

ANSWER = hypotheses.DECLARED.with_name("answer.toml")
ONE = Truth(1, ("lte",), ("tcp+", "quic"))


def concluded(folder: Path, truth: Truth) -> Conclusion:
    """The conclusion of a simulated campaign that asks the question of one site."""
    return of_campaign(load(write(folder, truth, ANSWER)))


def of_campaign(table: CampaignTable) -> Conclusion:
    declared = hypotheses.of_campaign(table.folder, table.document) if table.folder != Path() else hypotheses.load()
    return conclusion(findings_of(table, declared))


@pytest.mark.parametrize(
    ("effect", "noise", "beginning"),
    [
        (-0.2, 0.03, "QUIC showed site-01 20 % sooner than TCP+ on LTE (Speed Index, 95 % interval "),
        (+0.2, 0.03, "QUIC showed site-01 20 % later than TCP+ on LTE (Speed Index, 95 % interval "),
        (0, 0.002, "QUIC and TCP+ showed site-01 about equally soon on LTE: less than 5 % apart (Speed Index, 95 % "),
        (0, 0.2, "It is not decided whether QUIC shows site-01 sooner than TCP+ on LTE (Speed Index, 95 % interval "),
    ],
)
def test_a_campaign_of_one_contrast_has_one_sentence(
    tmp_path: Path, effect: float, noise: float, beginning: str
) -> None:
    truth = replace(ONE, runs=6, effects={"quic": effect}, noise_sd=noise, block_sd=0)
    sentence, simulated = concluded(tmp_path / "c", truth).sentences
    assert sentence.startswith(beginning)
    assert ", 6 loads of each)" in sentence
    assert simulated == "This campaign is simulated: nothing in it was measured."


def test_an_open_question_names_the_loads_that_would_decide_it(tmp_path: Path) -> None:
    truth = replace(ONE, runs=5, effects={"quic": -0.1}, noise_sd=0.06, block_sd=0)
    result = concluded(tmp_path / "open", truth)
    assert result.runs and 5 < result.runs < 500
    further = f"about {result.runs - 5} further loads of each would probably decide it."
    assert result.sentences[0].endswith(f"; if the difference is as large as measured, {further}")
    decided = concluded(tmp_path / "decided", replace(truth, runs=result.runs))
    assert decided.runs is None
    assert " sooner than " in decided.sentences[0]


def test_a_campaign_that_was_stopped_is_to_be_resumed_first(tmp_path: Path) -> None:
    truth = replace(ONE, runs=5, effects={"quic": -0.1}, noise_sd=0.06, block_sd=0)
    table = load(write(tmp_path / "c", truth, ANSWER))
    document = replace(table.document, settings=replace(table.document.settings, runs=400))
    assert of_campaign(replace(table, document=document)).runs == 400


def test_a_difference_near_zero_needs_too_many_loads_to_propose_them(tmp_path: Path) -> None:
    result = concluded(tmp_path / "c", replace(ONE, runs=5, effects={"quic": -0.001}, noise_sd=0.3, seed=3))
    assert result.runs is None
    assert "; if the difference is as large as measured, more than 500 further loads of each " in result.sentences[0]


def test_one_load_is_too_few_for_an_interval_and_for_a_forecast(tmp_path: Path) -> None:
    result = concluded(tmp_path / "c", replace(ONE, runs=1))
    assert result.sentences[0].endswith("(Speed Index, too few for an interval, 1 load of each).")
    assert result.runs == 6


def test_a_campaign_of_several_networks_has_a_sentence_for_each_pair() -> None:
    table = campaign(World(effects={"quic": -0.2}), 1)
    result = of_campaign(table)
    assert result.sentences == (
        "On average, QUIC shows these 12 pages sooner than TCP+ on DSL and LTE.",
        POST_HOC,
    )
    assert result.waterfall == {"SITE": "s00", "NET": result.waterfall["NET"], "PROTO": "tcp+,quic"}


def test_a_difference_that_something_else_may_explain_is_doubted() -> None:
    table = campaign(World(effects={"quic": -0.2}, fixed=True, runs=31), 1)
    assert (
        of_campaign(table)
        .sentences[0]
        .endswith("This may not be due to the protocols: they were not measured in random order.")
    )
