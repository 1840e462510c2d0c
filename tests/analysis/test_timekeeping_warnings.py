"""What a report says of a network without real-time priority."""

from dataclasses import replace

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


def test_a_campaign_behind_upstream_mahimahi_says_so_and_in_what_that_differs() -> None:
    document = campaign_document({"timekeeping": "ordinary priority", "mahimahi": "mahimahi 0.98"})
    document = replace(document, settings=replace(document.settings, shells="mahimahi"))
    (warning,) = timekeeping.warnings(document)
    assert "by the shells of mahimahi 0.98, not by ours: in whole milliseconds" in warning
