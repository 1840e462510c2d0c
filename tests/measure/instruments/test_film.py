"""A run has the number of states of the screen that its film does not show."""

from pathlib import Path

import pytest

from base.errors import EyelevelError
from dataset.run_files import VISUAL
from measure.instruments.contract import FinishedRun
from measure.instruments.film import INSTRUMENT


def test_the_recorder_s_counts_are_readings(tmp_path: Path) -> None:
    run = FinishedRun(tmp_path, {}, None)
    assert INSTRUMENT.read(run) == {}
    (tmp_path / VISUAL).write_text('{"faults": [], "recorder": {"thinned_out": 7, "drawn_over": 2}}')
    assert INSTRUMENT.read(run) == {"film_thinned_out": 7, "film_drawn_over": 2}
    # If the film could not be read, there are no counts.
    (tmp_path / VISUAL).write_text('{"faults": ["the film is not whole"]}')
    assert INSTRUMENT.read(run) == {"film_thinned_out": None, "film_drawn_over": None}


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_broken_document_is_a_failure_of_the_load(tmp_path: Path, content: str) -> None:
    (tmp_path / VISUAL).write_text(content)
    with pytest.raises(EyelevelError, match=r"visual\.json is broken"):
        INSTRUMENT.read(FinishedRun(tmp_path, {}, None))
