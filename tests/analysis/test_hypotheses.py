"""The hypotheses of a campaign, for any order of its protocols, and the allowed content of their file."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import hypotheses
from analysis.hypotheses import DECLARED
from analysis.statistics.hypotheses import Pair
from analysis.text import moment
from base.errors import EyelevelError
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument, require_document, write_document
from eyelevel.simulate import Truth, write

TCP_QUIC = Pair("tcp", "quic")


@pytest.mark.parametrize(
    ("protocols", "family"),
    [
        (("tcp", "quic"), {TCP_QUIC}),
        # In an order like this one, protocols once had no family, so RUNS=auto ended after one run.
        (("quic", "tcp"), {TCP_QUIC}),
        (("tcp+", "tcp"), {Pair("tcp", "tcp+")}),
        (("quic", "tcp", "tcp+bbr"), {TCP_QUIC}),
        (("mine", "tcp", "quic"), {TCP_QUIC}),
        (("mine", "yours"), {Pair("mine", "yours")}),
        # A declared pair, in any order, is the whole family.
        (("quic", "tcp", "tcp+"), {Pair("tcp+", "quic")}),
        (("tcp", "tcp+", "quic"), {Pair("tcp+", "quic")}),
        (("tcp",), set()),
    ],
)
def test_the_order_of_protocols_does_not_decide_whether_there_are_hypotheses(
    protocols: tuple[str, ...], family: set[Pair]
) -> None:
    assert set(hypotheses.load().restricted_to(protocols, ("si", "plt")).family) == family


def test_the_size_of_the_family_is_that_of_its_contrasts() -> None:
    declared = hypotheses.load()
    assert declared.family_metrics == ("si", "plt", "fcp", "lcp")
    assert declared.family_size(4) == 2 * 4 * 4
    assert declared.restricted_to(("tcp+", "quic"), ("plt",)).family_size(3) == 3
    assert declared.restricted_to(("tcp",), ("plt",)).family_size(3) == 0


def test_the_margin_is_half_a_round_trip() -> None:
    assert hypotheses.load().equivalence_round_trips == 0.5


@pytest.mark.parametrize("value", ["-1", "inf", "nan"])
def test_a_margin_of_no_round_trips_is_refused(value: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(DECLARED.read_text().replace("equivalence_round_trips = 0.5", f"equivalence_round_trips = {value}"))
    with pytest.raises(EyelevelError, match=r"equivalence_round_trips is .*, must be 0 .* or above"):
        hypotheses.load(file)


def test_a_file_without_the_margin_in_round_trips_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(DECLARED.read_text().replace("equivalence_round_trips = 0.5", ""))
    with pytest.raises(EyelevelError, match="equivalence_round_trips is missing or unknown"):
        hypotheses.load(file)


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """A campaign that has declared the default hypotheses."""
    return write(tmp_path / "simulated", Truth(sites=1, networks=("dsl",), protocols=("tcp", "quic"), runs=1))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A file with other hypotheses."""
    file = tmp_path / "other.toml"
    file.write_text(DECLARED.read_text().replace("significant_p = 0.01", "significant_p = 0.1"))
    return file


def test_a_campaign_is_asked_what_it_declared(simulated: Path) -> None:
    document = require_document(simulated)
    question = hypotheses.of_campaign(simulated, document)
    assert question == hypotheses.load()
    assert not question.origin.is_post_hoc
    assert question.origin.source == "hypotheses.toml"
    assert question.origin.declared_at == document.begun_at
    assert question.origin.sha256 == hashlib.sha256((simulated / "hypotheses.toml").read_bytes()).hexdigest()
    sentence = hypotheses.origin_sentence(question.origin)
    assert f"were declared on {moment(document.begun_at)}, before the first run" in sentence
    # Hypotheses restricted to protocols and metrics keep the file that they come from.
    assert question.restricted_to(("tcp", "quic"), ("si",)).origin == question.origin


def test_what_came_after_the_first_run_is_not_what_was_declared_before_it(simulated: Path, other: Path) -> None:
    document = require_document(simulated)
    added = {"networks": {"mss": "then"}, "protocols": {"quic": "then"}}
    document = replace(document, hypotheses=document.hypotheses | added)
    question = hypotheses.of_campaign(simulated, document)
    assert question.added_networks == {"mss": "then"}
    # If QUIC had not been added after the first run, the family of these protocols would be TCP+ and QUIC.
    restricted = question.restricted_to(("tcp", "tcp+", "quic"), ("si",))
    assert restricted.family == (Pair("tcp", "tcp+"),)
    assert Pair("tcp+", "quic") in restricted.comparisons
    assert restricted.declared_with("mss", ("dsl", "mss", "lte")) == ["mss"]
    assert restricted.declared_with("dsl", ("dsl", "mss", "lte")) == ["dsl", "lte"]
    post_hoc = hypotheses.of_campaign(simulated, document, other)
    assert not post_hoc.added_networks
    assert post_hoc.restricted_to(("tcp", "tcp+", "quic"), ("si",)).family == (Pair("tcp+", "quic"),)


def test_a_network_in_a_browser_came_when_both_were_there(simulated: Path) -> None:
    document = require_document(simulated)
    networks: dict[str, dict[str, Any]] = {"lte": {}, "mss": {}}
    browsers: dict[str, Any] = {"browser": {"name": "chromium"}, "further_browsers": {"firefox": {}}}
    settings = replace(document.settings, networks=networks, **browsers)
    early, late = "2026-11-23T01:00:00+0000", "2026-11-23T02:00:00+0000"
    names = ["lte", "mss", "lte@firefox", "mss@firefox"]

    def shared(added: dict[str, dict[str, str]], network: str) -> list[str]:
        changed = replace(document, settings=settings, hypotheses=document.hypotheses | added)
        return hypotheses.of_campaign(simulated, changed).declared_with(network, names)

    # Two browsers from the start.
    mss_later = {"networks": {"mss": early}}
    assert shared(mss_later, "mss@firefox") == shared(mss_later, "mss") == ["mss", "mss@firefox"]
    assert shared(mss_later, "lte") == ["lte", "lte@firefox"]
    for of_network, of_browser in ((early, late), (late, early)):
        both_later = {"networks": {"mss": of_network}, "further_browsers": {"firefox": of_browser}}
        with_mss = ["mss", "mss@firefox"] if of_network == late else ["lte@firefox", "mss@firefox"]
        assert shared(both_later, "mss@firefox") == with_mss
        assert shared(both_later, "lte") == ["lte"]


def test_an_added_protocol_is_no_reference_though_it_stands_first() -> None:
    added = replace(hypotheses.load(), added_protocols={"x": "later"})
    restricted = added.restricted_to(("x", "a", "b"), ("si",))
    assert restricted.family == (Pair("a", "b"),)
    assert set(restricted.comparisons) == {Pair("a", "b"), Pair("a", "x")}


def test_other_hypotheses_are_post_hoc_and_the_same_text_is_not(simulated: Path, other: Path) -> None:
    document = require_document(simulated)
    question = hypotheses.of_campaign(simulated, document, other)
    assert (question.significant_p, question.origin.is_post_hoc, question.origin.source) == (0.1, True, str(other))
    sentence = hypotheses.origin_sentence(question.origin)
    assert sentence.startswith(f"Post hoc: pairs, family and thresholds are those of {other} ")
    assert f"not those that the campaign declared on {moment(document.begun_at)}" in sentence
    assert not hypotheses.of_campaign(simulated, document, simulated / "hypotheses.toml").origin.is_post_hoc


@pytest.mark.parametrize("is_given", [True, False])
def test_a_campaign_that_declared_none_is_asked_post_hoc(is_given: bool, simulated: Path, other: Path) -> None:
    document = replace(require_document(simulated), hypotheses={})
    question = hypotheses.of_campaign(simulated, document, other if is_given else None)
    assert question.origin.is_post_hoc
    assert question.origin.source == (str(other) if is_given else "analysis/hypotheses.toml")
    sentence = hypotheses.origin_sentence(question.origin)
    assert sentence.startswith("Post hoc: the campaign has not declared its hypotheses")


@pytest.mark.parametrize("change", [lambda file: file.write_text("significant_p = 0.5"), Path.unlink])
def test_kept_hypotheses_that_are_not_the_declared_ones_are_refused(change: object, simulated: Path) -> None:
    change(simulated / "hypotheses.toml")  # type: ignore[operator]
    document = require_document(simulated)
    with pytest.raises(EyelevelError, match=r"hypotheses\.toml is missing, or no longer what the campaign declared"):
        hypotheses.of_campaign(simulated, document)
    # The hash in campaign.json identifies the declared hypotheses.
    assert not hypotheses.of_campaign(simulated, document, DECLARED).origin.is_post_hoc


def test_a_declaration_that_is_no_table_is_told(simulated: Path) -> None:
    write_document(simulated, CampaignDocument(CampaignSettings(), further={"hypotheses": "mine"}))
    with pytest.raises(EyelevelError, match=r"campaign\.json is broken: hypotheses is not a table"):
        require_document(simulated)


def test_a_file_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe")
    for path in (file, tmp_path):
        with pytest.raises(EyelevelError, match="is not a file of hypotheses"):
            hypotheses.load(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'pairs = [["tcp+", "quic"], ',
            'pairs = [["quic", "tcp+"], ',
            "not among the comparisons",
        ),
        ('metrics = ["si", "plt", "fcp", "lcp"]', 'metrics = ["SI"]', "there is no metric SI"),
    ],
)
def test_a_family_that_nothing_can_answer_is_an_error(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "hypotheses.toml"
    file.write_text(DECLARED.read_text().replace(old, new))
    with pytest.raises(EyelevelError, match=message):
        hypotheses.load(file)
