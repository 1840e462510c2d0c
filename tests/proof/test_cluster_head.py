"""The head of a cluster of simulated workers (`benchmarks.cluster`): nothing is lost when workers die."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.cluster.__main__ import Size, ideal_s, measure, quarters, summary
from dataset.plan import read_plan

FOREVER = float("inf")


def test_with_half_of_the_workers_killed_each_planned_run_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", "")  # the following sets it, and it is restored afterwards
    monkeypatch.setenv("TMPDIR", "")
    size = Size(sites=2, runs=3, groups=2, group_size=3, deaths=1)
    options = ["--sites=2", "--runs=3", "--speed=50", "--evidence-share=0.1"]
    course = measure(tmp_path, size, 50.0, options)
    planned = [run for block in read_plan(tmp_path / "results" / "made-up") for run in block]
    assert len(planned) == size.planned == 120
    assert Counter(row.of for row in course.rows if row.valid) == Counter(planned)
    assert "no longer responds; block" in (tmp_path / "results" / "head.log").read_text()
    numbers = summary(course)
    assert (numbers["workers"], numbers["deaths"]) == (6, 3)
    assert 0 < numbers["measuring"] <= 1
    # Chance decides which worker gets which block, and the result may be better than the schedule that counts as ideal.
    assert 0 < numbers["efficiency"] < 1.1
    assert len(quarters(course)) == 4


@pytest.mark.parametrize(
    ("blocks", "workers", "seconds"),
    [
        ([2.0, 1.0, 1.0], [(0, FOREVER), (0, FOREVER)], 2),
        # One worker comes late; one dies during its block, which another must make from its beginning.
        ([2.0, 2.0, 2.0], [(0, FOREVER), (1, FOREVER)], 4),
        ([2.0, 2.0], [(0, 1), (0, FOREVER)], 4),
        ([1.0, 1.0, 1.0], [(0, 1), (0, FOREVER)], 2),
        # A worker dies while the other one is idle, which begins the lost block at that moment.
        ([3.0, 1.0], [(0, 2), (0, FOREVER)], 5),
    ],
)
def test_an_ideal_head_gives_out_blocks_at_once(
    blocks: list[float], workers: list[tuple[float, float]], seconds: float
) -> None:
    assert ideal_s(blocks, workers) == seconds
