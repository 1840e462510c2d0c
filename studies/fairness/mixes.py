"""Mixes of flows: a number of flows against a number of others. No page is loaded, so a mix takes the place of a
page."""

import re

from record import cross_traffic
from record.generated import GeneratedSite

MIX = re.compile(r"fairness-([1-9]\d?)x([1-9]\d?)")


def mix_name(number: int, against: int) -> str:
    """The name of the site that stands for `number` flows against `against` others."""
    return f"fairness-{number}x{against}"


def mix_named(name: str) -> tuple[int, int] | None:
    """The numbers of flows and of other flows of the mix with this site name; None if the name is not that of a mix."""
    match = MIX.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def site(name: str) -> GeneratedSite | None:
    """The site from which the flows of the mix `name` download; None if `name` is not that of a mix."""
    return GeneratedSite(cross_traffic.RECORDER, cross_traffic.generate, is_for_study=True) if mix_named(name) else None
