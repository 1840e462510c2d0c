"""The demo sites: generated recordings, so that a fresh machine has something to measure.

Each has a folder in `templates/` (`builder.py` says what is in it); its texts and pictures follow from a seed.
"""

from record.demo.builder import SiteBuilder
from record.demo.items import front_page, photographs
from record.site import Recording

# With the function that writes their items.
_SITES = {"demo-light": None, "demo-news": front_page, "demo-gallery": photographs}

DEMO_SITES: tuple[str, ...] = tuple(_SITES)


def generate(name: str, seed: int = 2019) -> Recording:
    """The recording of the demo site `name`, one of DEMO_SITES; the same bytes for the same seed."""
    return SiteBuilder(name, seed, _SITES[name]).recording()
