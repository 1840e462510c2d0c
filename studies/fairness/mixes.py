"""Mixes of flows: a number of them against a number of others. No page is loaded, so a mix takes a page's place."""

import re

from record import cross_traffic
from record.generated import GeneratedSite

MIX = re.compile(r"fairness-([1-9]\d?)x([1-9]\d?)")


def mix_name(number: int, against: int) -> str:
    """The name of the site that stands for `number` flows against `against` others."""
    return f"fairness-{number}x{against}"


def mix_named(name: str) -> tuple[int, int] | None:
    """The numbers of flows and of others that a site of this name stands for; None when it is no such site."""
    match = MIX.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def site(name: str) -> GeneratedSite | None:
    """The site from which the flows of the mix called `name` download; None when `name` is no mix."""
    return GeneratedSite(cross_traffic.RECORDER, cross_traffic.generate, is_for_study=True) if mix_named(name) else None
