"""What a recorded site is in numbers. A campaign keeps it with its results, which may travel without the recordings."""

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from publicsuffixlist import PublicSuffixList

from base.errors import EyelevelError
from base.structure import structured
from measure import completeness
from record.site import Site

_public_suffixes = cache(PublicSuffixList)


@dataclass(frozen=True)
class SiteFacts:
    """What a site consists of, and how complete it is.

    `bytes` are those of bodies with their content-encoding on, `servers` IP addresses, `third_party_hosts` those under
    another registrable domain than the start page; `largest` is a URL. Of closed sites (`measure.closing`): `served`
    (the share of requested URLs), `jaccard` (of the sets of requested URLs, over all `loads`); None of others.
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


def facts_of(site: Site) -> SiteFacts:
    """The facts of `site`. Raises EyelevelError when what is known of its completeness is broken."""
    first_party = _domain(_host(site.url))
    hosts = {_host(exchange.url) for exchange in site.exchanges}
    largest = max(site.exchanges, key=lambda exchange: exchange.bytes)
    measured = completeness.read(site)
    return SiteFacts(
        exchanges=len(site.exchanges),
        bytes=sum(exchange.bytes for exchange in site.exchanges),
        servers=len(site.servers),
        hosts=len(hosts),
        third_party_hosts=sum(_domain(host) != first_party for host in hosts),
        largest_bytes=largest.bytes,
        largest=largest.url,
        served=measured.served if measured else None,
        jaccard=measured.jaccard if measured else None,
        loads=sum(loads.loads for loads in measured.protocols.values()) if measured else None,
    )


def parse_facts(values: Any, where: str) -> SiteFacts:
    """The facts in `values`; keys that this version does not know are left out. Raises EyelevelError that begins with
    `where`."""
    if not isinstance(values, dict):
        raise EyelevelError(f"{where}: is no table")
    known = {one.name: values[one.name] for one in fields(SiteFacts) if one.name in values}
    return structured(known, SiteFacts, where)


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def _domain(host: str) -> str:
    return _public_suffixes().privatesuffix(host) or host
