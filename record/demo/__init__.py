"""The demo sites: recordings made by a program, so that a fresh machine has something to measure.

Each is a list of hosts and of the resources they serve, in the order a browser asks for them; pages,
style sheets and scripts are in `templates/`, and texts, pictures and fonts are drawn from a seed.
"""

from record.demo import gallery, light, news
from record.demo.builder import SiteBuilder
from record.site import Recording

_SITES = {"demo-light": light, "demo-news": news, "demo-gallery": gallery}

DEMO_SITES: tuple[str, ...] = tuple(_SITES)


def generate(name: str, seed: int = 2019) -> Recording:
    """The recording of the demo site `name`, one of DEMO_SITES; the same bytes for the same seed."""
    site = SiteBuilder(name, seed, _SITES[name].HOSTS)
    _SITES[name].build(site)
    return site.recording()
