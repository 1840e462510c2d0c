"""The demo sites: generated recordings, so that a fresh machine has something to measure.

Each is a list of hosts and of the resources they serve, in the order in which a browser asks for them. Pages, style
sheets and scripts are in `templates/`; texts and pictures follow from a seed.
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
