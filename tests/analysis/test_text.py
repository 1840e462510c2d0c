"""How numbers, levels and times are written for a reader."""

import math

import pytest

from analysis.text import in_unit, label, level, moment, signed_in_unit, signed_interval_in_unit


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-22T07:23:12+0000", "22 November 2026, 07:23 UTC"),
        ("2026-03-02T08:00:00+00:00", "2 March 2026, 08:00 UTC"),
        ("2026-03-02T08:05:59+0100", "2 March 2026, 08:05 UTC+01:00"),
        ("2026-03-02T08:05:59", "2 March 2026, 08:05"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_time_is_written_as_people_do(text: str, written: str) -> None:
    assert moment(text) == written


@pytest.mark.parametrize(("share", "written"), [(0.95, "95 %"), (0.9, "90 %"), (0.995, "99.5 %"), (0.29, "29 %")])
def test_a_level_has_no_more_digits_than_it_needs(share: float, written: str) -> None:
    assert level(share) == written


def test_a_network_in_a_further_browser_names_that() -> None:
    assert label("lte@firefox") == "LTE in Firefox"
    assert label("lte@firefox-on-phone-mid") == "LTE in Firefox on phone-mid"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("lcp", 1234.4, "+1,234"),
        ("lcp", -9.94, "-9.9"),
        ("lcp", -0.04, "0"),
        ("content_bytes", 1530233.7, "+1,530,234"),
        ("connections", 8.0, "+8"),
        ("requests", -0.5, "-0.5"),
        ("connections", -0.04, "0"),
        ("cls", -0.0123, "-0.012"),
        ("cls", 0.0004, "0"),
        ("cls", math.nan, "-"),
    ],
)
def test_a_metrics_number_has_the_digits_that_its_unit_is_worth(metric: str, value: float, text: str) -> None:
    assert signed_in_unit(value, metric) == text
    assert in_unit(value, metric) == text.removeprefix("+")
    interval = signed_interval_in_unit(value, math.nan, metric), signed_interval_in_unit(value, value, metric)
    assert interval == ("-", "-" if math.isnan(value) else f"{text} to {text}")
