"""Mixes of flows: so many against so many others. No page is loaded, so a mix stands where others have a page."""

import re

from record import cross_traffic
from record.generated import GeneratedSite

MIX = re.compile(r"fairness-([1-9]\d?)x([1-9]\d?)")


def mix_name(number: int, against: int) -> str:
    """The name of the site that stands for so many flows against so many others."""
    return f"fairness-{number}x{against}"


def mix_named(name: str) -> tuple[int, int] | None:
    """How many flows against how many others a site of this name stands for; None when it is no such site."""
    match = MIX.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def site(name: str) -> GeneratedSite | None:
    """The site that flows of the mix `name` download; None when it is no mix."""
    return GeneratedSite(cross_traffic.RECORDER, cross_traffic.generate, is_for_study=True) if mix_named(name) else None
