"""How long runs took, with all that is between them."""

from dataclasses import replace

from factories import ROW, rejected

from dataset.durations import STOP_S, elapsed_seconds, mean_seconds, shared_seconds
from dataset.table import Row


def row(minute: int, second: int, **further: object) -> Row:
    return replace(ROW, started_at=f"2026-01-01T00:{minute:02}:{second:02}+0000", seconds=10.0, **further)  # type: ignore[arg-type]


def test_a_run_takes_until_the_next_one_begins_in_its_place() -> None:
    rows = [
        row(0, 0, lane=1, run=1),
        row(0, 5, lane=2, run=2),
        row(0, 12, lane=1, run=3),
        row(0, 40, lane=2, run=4),
        row(0, 12, lane=1, run=5, machine="another"),
    ]
    assert {one.run: seconds for one, seconds in elapsed_seconds(rows)} == {1: 12, 2: 35, 3: 10, 4: 10, 5: 10}


def test_a_stop_of_the_campaign_is_no_part_of_a_run() -> None:
    assert STOP_S == 300
    rows = [row(0, 0, run=1), row(5, 9, run=2), row(10, 20, run=3), row(10, 21, run=4)]
    # The last two overlap: their clock was set, or the table is a stranger's.
    assert [seconds for _, seconds in elapsed_seconds(rows)] == [309, 10, 10, 10]
    assert [seconds for _, seconds in elapsed_seconds([row(0, 0), replace(row(0, 12), started_at="once")])] == [10, 10]


def test_attempts_made_at_once_share_the_time_of_the_campaign() -> None:
    rows = [
        row(0, 0, lane=1, run=1),
        row(0, 5, lane=2, run=2),
        row(0, 20, lane=1, run=3),  # lane 2 waits for it
        row(9, 0, lane=1, run=4),
        replace(row(0, 12), run=5, started_at="once"),
    ]
    assert {one.run: seconds for one, seconds in shared_seconds(rows)} == {1: 7.5, 2: 12.5, 3: 10, 4: 10, 5: 10}
    assert shared_seconds([]) == []


def test_attempts_that_do_not_count_are_part_of_their_run() -> None:
    rows = [
        row(0, 0, run=1, network="lte"),
        rejected("gate: it is", row(0, 11, run=2, network="lte")),
        row(0, 23, run=2, attempt=2, network="lte"),
        row(0, 33, run=1, network="dsl"),
    ]
    assert mean_seconds(rows) == {(ROW.site, "lte"): (11 + 12 + 10) / 2, (ROW.site, "dsl"): 10}
