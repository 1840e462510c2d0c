"""Warnings in a report about lanes, and about a network without real-time priority."""

from dataclasses import replace

import pytest
from factories import campaign_document

from analysis.report.conditions import lane_facts, of_lanes, of_timekeeping
from measure.host.lanes import Lanes, lanes_of
from measure.host.timekeeping import OF_ROOT

TWO = Lanes(2, lanes_of(2, [(0,), (1,)]))


def test_lanes_that_nobody_measured_are_a_warning() -> None:
    document = replace(campaign_document(lanes=2), lanes={"here": TWO.record()})
    (warning,) = of_lanes(document)
    assert warning.startswith("On here, 2 runs were made at once, in lanes, since LANES was given as a number. ")
    assert lane_facts(document) == {"lanes of here": "2: a given number"}


def test_lanes_that_do_not_disturb_are_a_fact() -> None:
    record = replace(TWO, calibration={"reason": "2 lanes do not disturb each other"}).record()
    document = replace(campaign_document(lanes=2), lanes={"here": record})
    assert of_lanes(document) == []
    assert lane_facts(document) == {"lanes of here": "2: 2 lanes do not disturb each other"}


def test_loads_that_share_processors_are_a_warning_unless_that_was_measured() -> None:
    given = Lanes(at_once={"mss": 6, "da2gc": 4})
    document = replace(campaign_document(at_once=dict(given.at_once)), lanes={"here": given.record()})
    (warning,) = of_lanes(document)
    assert warning.startswith("On here, 6 runs on MSS shared processors and 4 runs on DA2GC shared processors, ")
    assert lane_facts(document) == {
        "lanes of here": "1: a given number; 6 at once on mss: a given number; 4 at once on da2gc: a given number"
    }
    sharing = {"mss": {"reason": "6 do not disturb"}, "da2gc": {"reason": "4 do not disturb"}}
    measured = replace(given, calibration={"reason": "2 lanes disturb", "sharing": sharing})
    document = replace(document, lanes={"here": measured.record()})
    assert of_lanes(document) == []
    assert lane_facts(document)["lanes of here"].endswith("; 4 at once on da2gc: 4 do not disturb")


def test_a_campaign_without_lanes_says_nothing_of_them() -> None:
    assert of_lanes(campaign_document()) == [] and lane_facts(campaign_document()) == {}
    refused = Lanes(calibration={"reason": "2 lanes disturb"}).record()
    document = replace(campaign_document(), lanes={"here": refused})
    assert of_lanes(document) == []
    assert lane_facts(document) == {"lanes of here": "1: 2 lanes disturb"}


def test_a_network_without_real_time_priority_is_a_warning() -> None:
    (warning,) = of_timekeeping(campaign_document({"timekeeping": "ordinary priority"}))
    assert "no real-time priority" in warning


@pytest.mark.parametrize("versions", [{"timekeeping": OF_ROOT}, {"timekeeping": "real-time priority"}, {}])
def test_a_network_with_it_is_none(versions: dict[str, str]) -> None:
    assert of_timekeeping(campaign_document(versions)) == []


def test_a_campaign_in_upstream_mahimahi_says_so_and_in_what_that_differs() -> None:
    document = campaign_document({"timekeeping": "ordinary priority", "mahimahi": "mahimahi 0.98"})
    document = replace(document, settings=replace(document.settings, shells="mahimahi"))
    (warning,) = of_timekeeping(document)
    assert "by the shells of mahimahi 0.98, not by ours. These emulate in whole milliseconds" in warning
