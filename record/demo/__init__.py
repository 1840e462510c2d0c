"""The demo sites: generated recordings, so that a new machine has something to measure.

Each has a folder in `templates/` (`builder.py` describes its content); a seed determines its texts and pictures.
"""

from functools import cache

from record.site import Recording

DEMO_SITES = ("demo-light", "demo-news", "demo-gallery")


@cache
def generate(name: str, seed: int = 2019) -> Recording:
    """The recording of the demo site `name`, one of DEMO_SITES; the same seed gives the same recording. Made once per
    process."""
    from record.demo.builder import SiteBuilder
    from record.demo.items import front_page, photographs

    items = {"demo-news": front_page, "demo-gallery": photographs}
    return SiteBuilder(name, seed, items.get(name)).recording()
