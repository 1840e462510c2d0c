"""A recorded site in numbers, which a campaign keeps with its results, since results may be shared without
recordings."""

from dataclasses import dataclass, fields
from typing import Any

from base.errors import EyelevelError
from base.structure import structured


@dataclass(frozen=True)
class SiteFacts:
    """The size of a site's content, and how complete the site is.

    `bytes`: of bodies with their content-encoding; `servers`: the number of IP addresses; `third_party_hosts`: hosts
    under another registrable domain than the start page; `largest`: a URL. `served` (the share of requested URLs) and
    `jaccard` (of the sets of requested URLs, over all `loads`) are None unless the site was completed
    (`measure.completing`).
    """

    exchanges: int
    bytes: int
    servers: int
    hosts: int
    third_party_hosts: int
    largest_bytes: int
    largest: str
    served: float | None = None
    jaccard: float | None = None
    loads: int | None = None


def parse_facts(values: Any, where: str) -> SiteFacts:
    """The facts in `values`; ignores keys that this version does not know. Raises EyelevelError with a text that begins
    with `where`."""
    if not isinstance(values, dict):
        raise EyelevelError(f"{where}: is not a table")
    known = {one.name: values[one.name] for one in fields(SiteFacts) if one.name in values}
    return structured(known, SiteFacts, where)
