"""Lanes consist of whole cores near each other, and all have the same number."""

import os
from dataclasses import asdict
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.host import topology
from measure.host.affinity import CORES_FOR_PLACES, Layout, layout
from measure.host.lanes import ONE_LANE, Lanes, cores_beside, lanes_of, working_on
from measure.host.topology import processors_in, whole_cores


@pytest.fixture(autouse=True)
def kernel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the kernel describes its processors, initially empty."""
    monkeypatch.setattr(topology, "PROCESSORS", tmp_path)
    return tmp_path


def tell(folder: Path, processors: dict[int, tuple[str, int, int]]) -> None:
    """Describe processors as the kernel does: number → the numbers of its core, package and last cache."""
    for number, (core, package, cache) in processors.items():
        of_processor = folder / f"cpu{number}"
        (of_processor / "topology").mkdir(parents=True)
        (of_processor / "cache/index3").mkdir(parents=True)
        (of_processor / "topology/core_cpus_list").write_text(f"{core}\n")
        (of_processor / "topology/physical_package_id").write_text(f"{package}\n")
        (of_processor / "cache/index3/id").write_text(f"{cache}\n")


def threads(cores: int, *, adjacent: bool) -> dict[int, tuple[str, int, int]]:
    """Cores with two threads each. The numbers of a core's threads are adjacent, or n and n + `cores`."""
    pairs = [(2 * core, 2 * core + 1) if adjacent else (core, core + cores) for core in range(cores)]
    return {number: (f"{pair[0]},{pair[1]}", 0, 0) for pair in pairs for number in pair}


def test_the_two_threads_of_a_core_are_in_one_lane(tmp_path: Path) -> None:
    # Intel numbers them like this.
    tell(tmp_path, threads(4, adjacent=False))
    cores = whole_cores(range(8))
    assert cores == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [lane.cores for lane in lanes_of(2, cores)] == [(0, 1, 4, 5), (2, 3, 6, 7)]


def test_cores_that_share_a_cache_are_in_one_lane(tmp_path: Path) -> None:
    # Even processors share one cache, odd ones another.
    tell(tmp_path, {number: (f"{number}", 0, number % 2) for number in range(8)})
    cores = whole_cores(range(8))
    assert [lane.cores for lane in lanes_of(2, cores)] == [(0, 2, 4, 6), (1, 3, 5, 7)]


def test_of_a_core_of_which_one_thread_is_ours_that_one_is_used(tmp_path: Path) -> None:
    tell(tmp_path, threads(4, adjacent=False))
    assert whole_cores({0, 4, 5}) == [(0, 4), (5,)]


def test_a_processor_of_which_nothing_is_known_is_a_core() -> None:
    assert whole_cores({3, 1}) == [(1,), (3,)]


def test_what_this_machines_kernel_says_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    usable = {processor for core in whole_cores() for processor in core}
    assert usable == os.sched_getaffinity(0)


@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize("cores", [6, 7, 12, 32])
def test_parts_of_a_run_have_whole_cores(tmp_path: Path, cores: int, adjacent: bool) -> None:
    tell(tmp_path, said := threads(cores, adjacent=adjacent))
    places = layout(range(2 * cores))
    assert places is not None
    of_processor = {processor: part for part, numbers in asdict(places).items() for processor in numbers}
    assert sorted(of_processor) == list(range(2 * cores))
    for core in {core for core, _, _ in said.values()}:
        assert len({of_processor[processor] for processor in processors_in(core)}) == 1, core


@pytest.mark.parametrize("adjacent", [False, True])
def test_parts_of_a_run_have_whole_cores_of_their_lane(tmp_path: Path, adjacent: bool) -> None:
    tell(tmp_path, threads(12, adjacent=adjacent))
    first, second = (layout(lane.cores) for lane in lanes_of(2, whole_cores(range(24))))
    for places, offset in ((first, 0), (second, 6)):
        pair = [[2 * core, 2 * core + 1] if adjacent else [core, core + 12] for core in range(offset, offset + 6)]
        of_browser = tuple(sorted(pair[4] + pair[5]))
        emulator, film, servers, analysis = (tuple(each) for each in pair[:4])
        assert places == Layout(servers, emulator, of_browser, film, analysis)


def test_threads_are_no_cores(tmp_path: Path) -> None:
    tell(tmp_path, threads(CORES_FOR_PLACES - 1, adjacent=False))
    assert layout(range(2 * CORES_FOR_PLACES - 2)) is None


@pytest.mark.parametrize(("count", "cores"), [(2, 2), (2, 13), (3, 20), (10, 64)])
def test_lanes_are_alike_and_apart(count: int, cores: int) -> None:
    lanes = lanes_of(count, [(core,) for core in range(cores)])
    assert [lane.number for lane in lanes] == list(range(1, count + 1))
    assert {len(lane.cores) for lane in lanes} == {cores // count}
    assert len({core for lane in lanes for core in lane.cores}) == count * (cores // count)


def test_more_lanes_than_cores_are_refused() -> None:
    with pytest.raises(EyelevelError, match="3 lanes need 3 processor cores, and this machine has 2 available"):
        lanes_of(3, [(0,), (1,)])


def test_the_campaigns_own_process_stays_out_of_the_way() -> None:
    def beside(cores: int, count: int = 2) -> set[int]:
        return cores_beside(lanes_of(count, [(core,) for core in range(cores)]), range(cores))

    assert beside(2 * CORES_FOR_PLACES + 1) == {2 * CORES_FOR_PLACES}
    # Without a core outside the lanes, it takes the processor of each lane on which films are analysed, or any
    # processor if lanes are too small for places.
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
