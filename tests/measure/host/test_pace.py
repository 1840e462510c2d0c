"""The share of a processor by which a device's index is reached."""

from itertools import repeat

import pytest

from base.errors import EyelevelError
from measure.host import pace
from measure.host.pace import TOLERANCE, found_pace
from tuning.devices import Device

PHONE = Device("phone", "a phone", 360, 640, 3.0, 400, 4)
WHOLE_INDEX = 3000.0


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_last_shares", {})


def test_the_share_is_changed_until_the_index_is_reached() -> None:
    """Stopping a process costs it something: it gets less than its share says."""
    shares: list[float | None] = []

    def trial(share: float | None) -> float:
        shares.append(share)
        return WHOLE_INDEX if share is None else WHOLE_INDEX * max(share - 0.03, 0)

    found = found_pace(PHONE, trial)
    assert found.index == pytest.approx(PHONE.index, rel=TOLERANCE)
    assert found.share == pytest.approx(PHONE.index / WHOLE_INDEX + 0.03, rel=TOLERANCE)
    # The next calibration begins where this one ended.
    shares.clear()
    found_pace(PHONE, trial)
    assert len(shares) == pace.REPETITIONS and shares[0] == pytest.approx(found.share, abs=1e-5)


def test_a_machine_that_is_slower_than_the_device_is_refused() -> None:
    with pytest.raises(EyelevelError, match="too slow for phone: its processor has an index of 300, and phone has 400"):
        found_pace(PHONE, lambda share: 300.0)


def test_a_processor_that_keeps_no_pace_is_refused_with_what_was_tried() -> None:
    indices = (index for three in repeat((200.0, 200.0, 200.0, 900.0, 900.0, 900.0)) for index in three)
    with pytest.raises(EyelevelError, match="was to be 400 within 5%, and was 200, 900, 200, 900"):
        found_pace(PHONE, lambda share: WHOLE_INDEX if share is None else next(indices))
