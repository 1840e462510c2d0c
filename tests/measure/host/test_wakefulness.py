"""Processors are kept awake during measurements, if the kernel allows it."""

import struct
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.host.exclusive import VARIABLE, measuring_alone
from measure.host.machine import versions
from measure.host.wakefulness import ASLEEP, AWAKE, LATENCY, idle_processors, processors_awake

can_keep_them_awake = pytest.mark.skipif(idle_processors() == ASLEEP, reason=f"need {LATENCY} that can be written")


def latency_us() -> int:
    """The currently allowed time for waking, whoever requested it."""
    with LATENCY.open("rb", buffering=0) as latency:
        microseconds: int = struct.unpack("=i", latency.read(4))[0]
    return microseconds


@can_keep_them_awake
def test_who_measures_alone_keeps_the_processors_awake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lock"))
    with measuring_alone():
        assert latency_us() == 0
        assert versions([])["idle_processors"] == AWAKE


def test_a_kernel_that_does_not_keep_them_awake_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "latency"
    file.write_bytes(bytes(4) + struct.pack("=i", 100))
    with pytest.raises(EyelevelError, match="does not keep the processors awake"), processors_awake(file):
        pass


def test_a_file_that_cannot_be_opened_keeps_nothing_awake(tmp_path: Path) -> None:
    # A folder cannot be opened for writing, even by root.
    assert idle_processors(tmp_path) == ASLEEP


def test_where_nobody_can_keep_them_awake_one_measures_all_the_same(tmp_path: Path) -> None:
    latency = tmp_path / "not there"
    assert idle_processors(latency) == ASLEEP
    with processors_awake(latency):
        assert not latency.exists()
