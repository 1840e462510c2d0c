"""Lanes are whole cores, near each other, and as many in each."""

import os
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.host.affinity import CORES_FOR_PLACES
from measure.host.lanes import ONE_LANE, Lanes, cores_beside, lanes_of, processors_in, whole_cores, working_on


def kernel(folder: Path, processors: dict[int, tuple[str, int, int]]) -> Path:
    """What a kernel says of processors: number → those of its core, package, last cache."""
    for number, (core, package, cache) in processors.items():
        of_processor = folder / f"cpu{number}"
        (of_processor / "topology").mkdir(parents=True)
        (of_processor / "cache/index3").mkdir(parents=True)
        (of_processor / "topology/core_cpus_list").write_text(f"{core}\n")
        (of_processor / "topology/physical_package_id").write_text(f"{package}\n")
        (of_processor / "cache/index3/id").write_text(f"{cache}\n")
    return folder


def test_the_two_threads_of_a_core_are_in_one_lane(tmp_path: Path) -> None:
    # Four cores of two threads, numbered as Intel's are.
    said = {number: (f"{number % 4},{number % 4 + 4}", 0, 0) for number in range(8)}
    cores = whole_cores(range(8), kernel(tmp_path, said))
    assert cores == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [lane.cores for lane in lanes_of(2, cores)] == [(0, 1, 4, 5), (2, 3, 6, 7)]


def test_cores_that_share_a_cache_are_in_one_lane(tmp_path: Path) -> None:
    # Even processors share one cache, odd ones another.
    said = {number: (f"{number}", 0, number % 2) for number in range(8)}
    cores = whole_cores(range(8), kernel(tmp_path, said))
    assert [lane.cores for lane in lanes_of(2, cores)] == [(0, 2, 4, 6), (1, 3, 5, 7)]


def test_of_a_core_of_which_one_thread_is_ours_that_one_is_used(tmp_path: Path) -> None:
    said = {number: (f"{number % 4},{number % 4 + 4}", 0, 0) for number in range(8)}
    assert whole_cores({0, 4, 5}, kernel(tmp_path, said)) == [(0, 4), (5,)]


def test_a_processor_of_which_nothing_is_known_is_a_core(tmp_path: Path) -> None:
    assert whole_cores({3, 1}, tmp_path) == [(1,), (3,)]
    usable = {processor for core in whole_cores() for processor in core}
    assert usable == os.sched_getaffinity(0)


@pytest.mark.parametrize(("count", "cores"), [(2, 2), (2, 13), (3, 20), (10, 64)])
def test_lanes_are_alike_and_apart(count: int, cores: int) -> None:
    lanes = lanes_of(count, [(core,) for core in range(cores)])
    assert [lane.number for lane in lanes] == list(range(1, count + 1))
    assert {len(lane.cores) for lane in lanes} == {cores // count}
    assert len({core for lane in lanes for core in lane.cores}) == count * (cores // count)


def test_more_lanes_than_cores_are_refused() -> None:
    with pytest.raises(EyelevelError, match="3 lanes need 3 processor cores, and this machine has 2 for us"):
        lanes_of(3, [(0,), (1,)])


def test_the_campaigns_own_process_stays_out_of_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(cores: int, count: int = 2) -> set[int]:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
        return cores_beside(lanes_of(count, [(core,) for core in range(cores)]))

    assert beside(2 * CORES_FOR_PLACES + 1) == {2 * CORES_FOR_PLACES}
    # Where films are analysed in each lane; anywhere when lanes are too small for places.
    assert len(beside(2 * CORES_FOR_PLACES)) == 2
    assert beside(4) == {0, 1, 2, 3}


def test_a_process_works_where_it_is_put_and_comes_back() -> None:
    before = os.sched_getaffinity(0)
    with working_on({min(before)}):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before


def test_the_kernels_lists_are_read() -> None:
    assert processors_in("0-2,8") == [0, 1, 2, 8]
    assert processors_in("5") == [5]


def test_a_record_says_what_is_to_be_said() -> None:
    assert ONE_LANE.record() == {}
    assert Lanes(calibration={"reason": "measured"}).record()["calibration"] == {"reason": "measured"}
    record = Lanes(2, lanes_of(2, [(core,) for core in range(12)])).record()
    assert (record["count"], record["cores"][1]) == (2, [6, 7, 8, 9, 10, 11])
    assert record["places"][1]["emulator"] == [6]
