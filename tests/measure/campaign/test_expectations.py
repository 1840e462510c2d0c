"""Gates that compare a run with the others of its site: they reject runs, and their verdicts persist."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.campaign.expectations import ENOUGH, EXPECTATIONS, MISSED_REQUEST_EXPECTATION, RunOutcome, judge

PICTURE = np.full((96, 171, 3), 255, dtype=np.uint8)
USUAL = RunOutcome(requests=90, missed=2, exchanges=80, last_frame=PICTURE)


def with_hole(share: float) -> np.ndarray:
    """The picture with a grey part that takes this share of its height."""
    picture = PICTURE.copy()
    picture[: round(share * len(picture))] = 128
    return picture


FAULTS = {
    "exchange_unused": [replace(USUAL, exchanges=60)],
    "last_frame_unlike": [replace(USUAL, last_frame=with_hole(0.1)), replace(USUAL, last_frame=with_hole(1)[:50])],
}
SOUND = [
    replace(USUAL, missed=20),
    replace(USUAL, missed=0, exchanges=82),
    replace(USUAL, last_frame=with_hole(0.01)),
    replace(USUAL, last_frame=None),
]


@pytest.mark.parametrize(("gate", "run"), [(gate, run) for gate, runs in FAULTS.items() for run in runs])
def test_a_run_that_is_unlike_the_others_is_rejected_by_name(gate: str, run: RunOutcome) -> None:
    reasons = judge([*[USUAL] * ENOUGH, run])
    assert list(reasons) == [ENOUGH]
    assert reasons[ENOUGH].gate == gate


@pytest.mark.parametrize("run", SOUND)
def test_a_run_like_the_others_counts(run: RunOutcome) -> None:
    assert judge([*[USUAL] * ENOUGH, run]) == {}


def test_every_norm_is_tried_here_and_explained() -> None:
    assert {expectation.name for expectation in EXPECTATIONS} == set(FAULTS)
    assert all(expectation.check.__doc__ for expectation in EXPECTATIONS)


def test_nothing_is_said_while_there_are_too_few() -> None:
    assert judge([replace(USUAL, exchanges=40), *[USUAL] * (ENOUGH - 2)]) == {}
    assert list(judge([replace(USUAL, exchanges=40), *[USUAL] * (ENOUGH - 1)])) == [0]


def test_a_page_with_two_final_looks_is_not_rejected_for_either() -> None:
    runs = [USUAL, replace(USUAL, last_frame=with_hole(0.5))] * ENOUGH
    assert judge(runs) == {}


def test_a_protocol_over_which_a_page_asks_for_more_keeps_its_runs() -> None:
    """A page did so on two networks: over three of seven protocols, it sent more requests in every round."""
    usual, more = replace(USUAL, missed=2), replace(USUAL, requests=97, missed=9)
    assert judge([more, more, usual, usual, usual, more, usual] * 2) == {}


def test_what_asks_for_the_same_however_fast_it_comes_has_an_expectation_of_its_own() -> None:
    assert list(judge([*[USUAL] * ENOUGH, replace(USUAL, missed=20)], expectations=[MISSED_REQUEST_EXPECTATION])) == [
        ENOUGH
    ]
    assert judge([*[USUAL] * ENOUGH, replace(USUAL, missed=5)], expectations=[MISSED_REQUEST_EXPECTATION]) == {}


@given(st.lists(st.integers(40, 80), min_size=ENOUGH, max_size=30), st.integers(0, 10))
def test_what_was_said_stays_when_more_runs_come(exchanges: list[int], more: int) -> None:
    runs = [RunOutcome(90, 2, count, None) for count in exchanges]
    said = judge(runs)
    later = judge([*runs, *[replace(USUAL, last_frame=None)] * more])
    assert judge([*runs, *[replace(USUAL, last_frame=None)] * more], first=len(runs)).items() <= later.items()
    assert {place: reason for place, reason in later.items() if place < len(runs)} == said
