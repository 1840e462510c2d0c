"""Names of networks, protocols, sites and campaigns, which a shell completes (`base.options`).

Completion has no side effects: it generates no demo site, and reports no unreadable file.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from base.places import RESULTS
from browsers.registry import all_browsers
from eyelevel.arguments import campaigns_in
from record.collection import available_names
from record.page_sources import SETS
from tuning import devices, networks, protocols
from tuning.settings import Catalogue

ALL = "all"


def network_names(_: click.Context) -> Iterable[str]:
    """All networks, and the names of groups of networks."""
    return _with_groups(networks.load())


def protocol_names(_: click.Context) -> Iterable[str]:
    """All protocols, and the names of groups of protocols."""
    return _with_groups(protocols.load())


def device_names(_: click.Context) -> Iterable[str]:
    """All devices."""
    return _with_groups(devices.load())


def browser_names(_: click.Context) -> Iterable[str]:
    """All browsers."""
    return [*all_browsers(), ALL]


def site_names(_: click.Context) -> Iterable[str]:
    """All sites that exist, or that are generated when they are first needed."""
    return [*available_names(), *SETS, *(page for pages in SETS.values() for page in pages()), ALL]


def campaign_names(context: click.Context) -> Iterable[str]:
    """The campaigns in the folder of results."""
    results: Path = context.params.get("results") or RESULTS
    return campaigns_in(results)


def _with_groups(settings: Catalogue[Any]) -> Iterable[str]:
    return dict.fromkeys([*settings, *settings.groups, ALL])
