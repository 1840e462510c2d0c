"""What a report says of lanes."""

from dataclasses import replace

from factories import campaign_document

from analysis import lanes
from measure.host.lanes import Lanes, lanes_of

TWO = Lanes(2, lanes_of(2, [(0,), (1,)]))


def test_lanes_that_nobody_measured_are_a_warning() -> None:
    document = replace(campaign_document(lanes=2), lanes={"here": TWO.record()})
    (warning,) = lanes.warnings(document)
    assert "2 runs were made at once, in lanes, on here" in warning and "not measured" in warning
    assert lanes.facts(document) == {"lanes of here": "2: a number that was given"}


def test_lanes_that_do_not_disturb_are_a_fact() -> None:
    record = replace(TWO, calibration={"reason": "2 lanes do not disturb each other"}).record()
    document = replace(campaign_document(lanes=2), lanes={"here": record})
    assert lanes.warnings(document) == []
    assert lanes.facts(document) == {"lanes of here": "2: 2 lanes do not disturb each other"}


def test_a_campaign_without_lanes_says_nothing_of_them() -> None:
    assert lanes.warnings(campaign_document()) == [] and lanes.facts(campaign_document()) == {}
    refused = Lanes(calibration={"reason": "2 lanes disturb"}).record()
    document = replace(campaign_document(), lanes={"here": refused})
    assert lanes.warnings(document) == []
    assert lanes.facts(document) == {"lanes of here": "1: 2 lanes disturb"}
