"""Finding the share of a processor that gives a device's index, and checking later that it still gives this index."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from base.errors import EyelevelError
from base.files import read_json, write_json
from dataset.run_files import DEVICE_PACE
from measure.host import device_index
from measure.host.device_index import (
    FEW,
    MANY,
    PATIENCE_S,
    PAUSE_S,
    TOLERANCE,
    NoPace,
    Paces,
    Trial,
    first_share,
    look,
    reach,
)
from measure.instruments.pace import at_their_paces
from tuning.devices import Device

PHONE = Device("phone", "a phone", 360, 640, 3.0, 400, 4)
WHOLE_INDEX = 3000.0


class Machine:
    """A processor that is `factor` times as fast as at first; if `stuck` is set, every limited share gives that
    index."""

    def __init__(self) -> None:
        self.factor, self.stuck, self.trials = 1.0, 0.0, 0
        self.now_s = 0.0

    def trial(self, share: float | None) -> float:
        self.trials += 1
        if self.stuck and share is not None:
            return self.stuck
        # Stopping a process has a cost: it gets less than its share.
        return WHOLE_INDEX * self.factor * (1.0 if share is None else max(share - 0.03, 0.001))

    @contextmanager
    def trials_on(self, cores: Sequence[int]) -> Iterator[Trial]:
        yield self.trial

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def paces(self) -> Paces:
        return Paces(self.trials_on, lambda: self.now_s, self.sleep)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_share_is_changed_until_the_index_is_reached(machine: Machine) -> None:
    pace = reach(PHONE, first_share(PHONE, machine.trial), machine.trial)
    assert pace.index == pytest.approx(PHONE.index, rel=TOLERANCE)
    assert pace.share == pytest.approx(PHONE.index / WHOLE_INDEX + 0.03, rel=TOLERANCE)


def test_a_machine_that_is_slower_than_the_device_is_refused() -> None:
    with pytest.raises(EyelevelError, match="too slow for phone: its processor has an index of 300, and phone has 400"):
        first_share(PHONE, lambda share: 300.0)


def test_a_share_is_at_most_a_whole_processor() -> None:
    shares = list[float]()

    def trial(share: float | None) -> float:
        assert share is not None
        shares.append(share)
        return 300.0

    with pytest.raises(NoPace):
        reach(PHONE, 0.9, trial)
    assert max(shares) == 1.0


def test_a_processor_that_keeps_no_pace_is_refused_with_what_was_reached() -> None:
    indices = (index for _ in count() for index in (*[200.0] * MANY, *[900.0] * MANY))
    with pytest.raises(NoPace, match="an index of 400, and the processor reached 200, 900, 200, 900"):
        reach(PHONE, 0.2, lambda _: next(indices))


def test_a_look_that_says_no_is_decided_by_more_trials() -> None:
    indices = iter([*[500.0] * FEW, *[402.0] * (MANY - FEW)])
    assert look(PHONE, 0.2, lambda _: next(indices)).index == 402.0


def test_a_look_after_a_block_is_one_before_the_next(machine: Machine) -> None:
    paces = machine.paces()
    paces.await_reached([PHONE], (), warn=pytest.fail)
    share = paces.pace_of(PHONE).share
    machine.trials = 0
    assert paces.look_again([PHONE], ())["phone"].share == share
    paces.await_reached([PHONE], (), warn=pytest.fail)
    assert machine.trials == FEW


def test_a_load_at_a_pace_keeps_the_index_that_its_device_has_after_the_block(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_index, "HERE", machine.paces())
    (at_pace := tmp_path / "at pace").mkdir()
    (failed := tmp_path / "failed").mkdir()
    with at_their_paces({at_pace: PHONE, failed: PHONE}, None, pytest.fail):
        pace = device_index.HERE.pace_of(PHONE)
        write_json(at_pace / DEVICE_PACE, {"index": pace.index})
        machine.factor = 0.8
    account = read_json(at_pace / DEVICE_PACE)
    assert account["index"] == pytest.approx(PHONE.index, rel=TOLERANCE)
    assert account["index_after"] == pytest.approx(0.8 * account["index"], rel=TOLERANCE)
    assert not list(failed.iterdir())


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.5])
def test_the_share_of_the_next_block_follows_the_machine(machine: Machine, factor: float) -> None:
    paces = machine.paces()
    paces.await_reached([PHONE], (), warn=pytest.fail)
    share = paces.pace_of(PHONE).share
    machine.factor = factor
    assert paces.look_again([PHONE], ())["phone"].index == pytest.approx(PHONE.index * factor, rel=0.05)
    paces.await_reached([PHONE], (), warn=pytest.fail)
    pace = paces.pace_of(PHONE)
    assert pace.index == pytest.approx(PHONE.index, rel=TOLERANCE)
    assert pace.share == pytest.approx((share - 0.03) / factor + 0.03, rel=0.05)


def test_an_unsteady_processor_is_waited_for(machine: Machine) -> None:
    paces, warnings = machine.paces(), list[str]()
    machine.stuck = 900.0

    def recover(text: str) -> None:
        warnings.append(text)
        machine.stuck = 0.0

    paces.await_reached([PHONE], (), recover)
    assert len(warnings) == 1 and "reached 900, 900" in warnings[0]
    assert paces.pace_of(PHONE).index == pytest.approx(PHONE.index, rel=TOLERANCE)


def test_a_machine_that_keeps_no_pace_for_long_ends_the_wait(machine: Machine) -> None:
    machine.stuck = 900.0
    with pytest.raises(EyelevelError, match=r"an index of 400, and the processor reached 900, .* again and again"):
        machine.paces().await_reached([PHONE], (), lambda _: None)
    assert PATIENCE_S < machine.now_s <= PATIENCE_S + PAUSE_S
