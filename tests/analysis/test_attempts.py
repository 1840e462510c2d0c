"""The outcome of a run, derived from its attempts."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.worlds import World, attempt, campaign, table_of

from analysis.attempts import cubes, tried_runs
from dataset.gates import KIND_OF_GATE, PAGE_GATES, REQUEST_MISSED
from dataset.table import WITHDRAWN
from measure.campaign.expectations import EXPECTATIONS
from measure.run.gates import GATES


def only_run(*attempts: dict[str, object]) -> dict[str, Any]:
    """The one run to which these attempts belong."""
    rows = [{"attempt": number, "at": 10.0 * number, **values} for number, values in enumerate(attempts, start=1)]
    table = tried_runs(table_of(pd.DataFrame([attempt(**row) for row in rows]), 1).runs)
    assert len(table) == 1
    return dict(table.iloc[0])


LOST: dict[str, object] = {"reason": "load_unfinished: no", "si": 9999.0}
BLANK: dict[str, object] = {"reason": "film_unclean: no"}
COUNTS: dict[str, object] = {"si": 700.0}


def test_a_load_that_was_made_again_is_lost_all_the_same() -> None:
    run = only_run(LOST, COUNTS)
    assert (run["valid"], run["lost"], run["gate"], run["attempts"], run["si"]) == (
        True,
        True,
        "load_unfinished",
        2,
        700,
    )


@pytest.mark.parametrize("reason", ["film_unclean: no", "machine_busy: yes", "request_missed: 9", "withdrawn: no"])
def test_what_says_nothing_of_the_page_is_no_loss(reason: str) -> None:
    run = only_run({"reason": reason}, COUNTS)
    assert (run["valid"], run["judged"], run["lost"], run["gate"]) == (True, True, False, "")
    alone = only_run({"reason": reason})
    assert (alone["valid"], alone["judged"], alone["lost"]) == (False, False, False)


def test_the_first_attempt_that_tells_decides() -> None:
    assert only_run(BLANK, LOST, COUNTS)["lost"]
    assert not only_run(BLANK, COUNTS)["lost"]


def test_a_gate_that_nobody_knows_is_a_load_that_failed() -> None:
    assert only_run({"reason": "load_finished: simulated"})["lost"]
    assert only_run({"reason": "seen: by a person"})["lost"]


def test_a_rejected_attempt_has_no_times() -> None:
    assert pd.isna(only_run(LOST)["si"])


def test_superseded_attempts_are_passed_over() -> None:
    run = only_run({"reason": "superseded: another attempt counts"}, COUNTS)
    assert (run["attempts"], run["lost"]) == (1, False)


def test_every_gate_of_which_the_kind_is_told_exists() -> None:
    expectations = {REQUEST_MISSED, *(expectation.name for expectation in EXPECTATIONS)}
    assert KIND_OF_GATE.keys() <= {gate.name for gate in GATES} | expectations | {WITHDRAWN}
    assert expectations == set(PAGE_GATES)


def test_a_run_is_told_once_whatever_the_order_of_the_rows() -> None:
    runs = campaign(World(sites=3, runs=4, lost={"quic": 0.3}, retried=True, unfit=0.2), 1).runs
    runs_of_attempts = tried_runs(runs)
    assert len(runs_of_attempts) == 3 * 4 * 2 * 3
    assert runs_of_attempts["started"].is_monotonic_increasing
    again = tried_runs(runs.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(runs_of_attempts, again)


def test_without_blocks_and_starts_the_run_is_the_block() -> None:
    runs = campaign(World(sites=2, runs=2), 1).runs
    runs_of_attempts = tried_runs(runs.drop(columns=["block", "started_at"]))
    assert (runs_of_attempts["block"] == runs_of_attempts["run"]).all()
    assert runs_of_attempts["started"].isna().all()
    assert (tried_runs(runs.assign(block=0))["block"] == runs_of_attempts["run"].max()).any()


def test_the_blocks_of_a_site_stand_from_the_first_place_on() -> None:
    runs_of_attempts = tried_runs(campaign(World(sites=2, runs=3), 1).runs)
    (values,) = cubes(runs_of_attempts, ["run"], ["tcp", "quic"], ["dsl", "lte"])
    assert values.tolist() == np.broadcast_to([1, 2, 3], (2, 2, 2, 3)).tolist()
