"""What a report says of a network without real-time priority."""

import pytest
from factories import campaign_document

from analysis import timekeeping
from measure.host.timekeeping import OF_ROOT


def test_a_network_without_real_time_priority_is_a_warning() -> None:
    (warning,) = timekeeping.warnings(campaign_document({"timekeeping": "ordinary priority"}))
    assert "no real-time priority" in warning


@pytest.mark.parametrize("versions", [{"timekeeping": OF_ROOT}, {"timekeeping": "real-time priority"}, {}])
def test_a_network_with_it_is_none(versions: dict[str, str]) -> None:
    assert timekeeping.warnings(campaign_document(versions)) == []
