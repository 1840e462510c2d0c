"""How idle the processors were, from the kernel's own counters."""

from collections.abc import Collection
from pathlib import Path

import pytest

from measure.host.idleness import TICKS_PER_S, Idleness


class Kernel:
    """A kernel with two processors whose counters the test sets; `second` passes between looks."""

    def __init__(self, folder: Path) -> None:
        self.stat, self.now_s = folder / "stat", 100.0
        self.idle_ticks = [1000, 2000]
        self.write()

    def idleness(self, cores: Collection[int], window_s: float) -> Idleness:
        return Idleness(cores, window_s, self.stat, lambda: self.now_s)

    def write(self) -> None:
        lines = [f"cpu{core} 7 0 7 {idle} 5 0 0 0 0 0" for core, idle in enumerate(self.idle_ticks)]
        self.stat.write_text("\n".join(["cpu  14 0 14 3000 10 0 0 0 0 0", *lines, "intr 12345", ""]))

    def passes(self, seconds: float, *shares: float) -> None:
        """Let time pass; the processors are idle for these shares of it."""
        self.now_s += seconds
        self.idle_ticks = [
            idle + round(share * seconds * TICKS_PER_S) for idle, share in zip(self.idle_ticks, shares, strict=True)
        ]
        self.write()


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def test_nothing_is_known_before_the_window_has_passed(kernel: Kernel) -> None:
    idle = kernel.idleness([0, 1], window_s=1.0)
    assert idle.look() is None
    kernel.passes(0.5, 1, 1)
    assert idle.look() is None
    kernel.passes(0.5, 1, 1)
    assert idle.look() == pytest.approx(1.0)


def test_the_share_is_of_the_window_alone_and_of_the_cores_asked_for(kernel: Kernel) -> None:
    both, one = kernel.idleness([0, 1], window_s=1.0), kernel.idleness([1], window_s=1.0)
    for seconds, shares in ((1.0, (0.0, 0.0)), (1.0, (0.2, 0.6)), (0.0, (0.0, 0.0))):
        both.look()
        one.look()
        kernel.passes(seconds, *shares)
    assert both.look() == pytest.approx(0.4)
    assert one.look() == pytest.approx(0.6)


def test_a_processor_of_which_the_kernel_tells_nothing_is_not_taken_for_idle(kernel: Kernel) -> None:
    idle = kernel.idleness([0, 7], window_s=0.1)
    for _ in range(3):
        assert idle.look() is None
        kernel.passes(1.0, 1, 1)
