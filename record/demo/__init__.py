"""The demo sites: generated recordings, so that a fresh machine has something to measure.

Each has a folder in `templates/` (`builder.py` says what is in it); its texts and pictures follow from a seed.
"""

from functools import cache

from record.site import Recording

DEMO_SITES = ("demo-light", "demo-news", "demo-gallery")


@cache
def generate(name: str, seed: int = 2019) -> Recording:
    """The recording of the demo site `name`, one of DEMO_SITES; the same for the same seed, made once a process."""
    from record.demo.builder import SiteBuilder
    from record.demo.items import front_page, photographs

    items = {"demo-news": front_page, "demo-gallery": photographs}
    return SiteBuilder(name, seed, items.get(name)).recording()
