"""The browser of one page load: the page and window that it gets, whether it can load a site, and its time limit."""

from browsers.contract import Browser, Page
from browsers.window import Window, recorded_window
from record.site import Site
from servers.registry import server_of
from tuning.devices import Device
from tuning.networks import Network
from tuning.protocols import Protocol


def window(site: Site, device: Device | None = None) -> Window:
    """The window of `device`; without a device, the window in which `site` was recorded, as far as its index says."""
    if device:
        return Window(device.width, device.height, mobile=True, pixel_ratio=device.pixel_ratio, model=device.model)
    return recorded_window(site.user_agent, site.viewport)


def page_of(site: Site, device: Device | None = None, proxy: tuple[str, int] | None = None) -> Page:
    """The page of `site`, as loaded on `device` or as recorded, through `proxy` if given."""
    authorities = tuple(authority for of_server in site.servers.values() for authority in of_server)
    # On a device, the browser sends its own user agent.
    user_agent = None if device else site.user_agent
    return Page(site.url, tuple(site.addresses), authorities, window(site, device), user_agent, proxy)


def refusal(
    browser: Browser,
    protocol: Protocol,
    site: Site,
    device: Device | None = None,
    proxy: tuple[str, int] | None = None,
) -> str | None:
    """Why `browser` (on `device` and through `proxy`, if given) cannot load `site` over `protocol`, in one line; None
    if it can."""
    if fault := browser.refusal(protocol):
        return f"{browser.name} cannot load over {protocol.name}: {fault}"
    if not browser.sends_connection_options:
        server = server_of(protocol)
        wanted = [tag for tag in server.connection_options(protocol) if tag not in server.options_by_itself]
        if wanted:
            what = f"{server.name} does as {protocol.name} says only if a browser sends {', '.join(wanted)}"
            return f"{browser.name} cannot load over {protocol.name}: it sends no connection options, and {what}"
    if fault := browser.page_refusal(page_of(site, device, proxy), protocol):
        return f"{browser.name} cannot load {site.name} over {protocol.name}: {fault}"
    return None


def load_limit_s(site: Site, network: Network) -> float:
    """The time after which a load has failed; the same for every protocol.

    It is a minute plus four times as long as one TCP connection would need for the whole site, if all background flows
    had the same share of the link as this connection.
    """
    total_bits = 8 * sum(exchange.bytes for exchange in site.exchanges)
    return 60 + 4 * total_bits / network.tcp_rate_bps() * (1 + len(network.cross_traffic or ()))
