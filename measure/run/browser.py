"""The browser of one page load: what it shows a site as, and how long it may take."""

from browsers.contract import Page
from browsers.window import Window, recorded_window
from record.site import Site
from tuning.networks import Network


def window(site: Site) -> Window:
    """The window `site` was recorded in, as far as its index has it."""
    return recorded_window(site.user_agent, site.viewport)


def page_of(site: Site) -> Page:
    """The page of `site`, as a browser loads it."""
    authorities = tuple(authority for of_server in site.servers.values() for authority in of_server)
    return Page(site.url, tuple(site.addresses), authorities, window(site), site.user_agent)


def load_limit_s(site: Site, network: Network) -> float:
    """How long a load may take before it has failed; the same for every protocol.

    Four times what one TCP connection would need for the whole site, and a minute on top.
    """
    total_bits = 8 * sum(exchange.bytes for exchange in site.exchanges)
    return 60 + 4 * total_bits / network.tcp_rate_bps()
