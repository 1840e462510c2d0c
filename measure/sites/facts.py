"""Facts of a recorded site, such as its numbers of exchanges, bytes and hosts."""

from base.domains import registrable_domain
from dataset.site_facts import SiteFacts
from measure.sites import completeness
from record.site import Site


def facts_of(site: Site) -> SiteFacts:
    """The facts of `site`. Raises EyelevelError when the file on its completeness is broken."""
    first_party = registrable_domain(_host(site.url))
    hosts = {_host(exchange.url) for exchange in site.exchanges}
    largest = max(site.exchanges, key=lambda exchange: exchange.bytes)
    measured = completeness.read(site)
    return SiteFacts(
        exchanges=len(site.exchanges),
        bytes=site.page_bytes,
        servers=len(site.servers),
        hosts=len(hosts),
        third_party_hosts=sum(registrable_domain(host) != first_party for host in hosts),
        largest_bytes=largest.bytes,
        largest=largest.url,
        served=measured.served if measured else None,
        jaccard=measured.jaccard if measured else None,
        loads=sum(loads.loads for loads in measured.protocols.values()) if measured else None,
    )


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]
