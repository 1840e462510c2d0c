"""What a campaign's hypotheses are, whatever the order of its protocols, and what their file may hold."""

from pathlib import Path

import pytest

from analysis import hypotheses
from analysis.hypotheses import DECLARED, Pair
from base.errors import EyelevelError

TCP_QUIC = Pair("tcp", "quic")


@pytest.mark.parametrize(
    ("protocols", "family"),
    [
        (("tcp", "quic"), {TCP_QUIC}),
        # W1: these had none, so RUNS=auto ended after one run.
        (("quic", "tcp"), {TCP_QUIC}),
        (("tcp+", "tcp"), {Pair("tcp", "tcp+")}),
        (("quic", "tcp", "tcp+bbr"), {TCP_QUIC}),
        (("mine", "tcp", "quic"), {TCP_QUIC}),
        (("mine", "yours"), {Pair("mine", "yours")}),
        # A declared pair, in any order, is the family alone.
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
    assert declared.family_size(4) == 2 * 2 * 4
    assert declared.restricted_to(("tcp+", "quic"), ("plt",)).family_size(3) == 3
    assert declared.restricted_to(("tcp",), ("plt",)).family_size(3) == 0


def test_the_margin_is_half_a_round_trip() -> None:
    assert hypotheses.load().equivalence_round_trips == 0.5


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan"])
def test_a_margin_of_no_round_trips_is_refused(value: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(DECLARED.read_text().replace("equivalence_round_trips = 0.5", f"equivalence_round_trips = {value}"))
    with pytest.raises(EyelevelError, match=r"equivalence_round_trips is .*, must be above 0"):
        hypotheses.load(file)


def test_a_file_without_the_margin_in_round_trips_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(DECLARED.read_text().replace("equivalence_round_trips = 0.5", ""))
    with pytest.raises(EyelevelError, match="equivalence_round_trips is missing or unknown"):
        hypotheses.load(file)
