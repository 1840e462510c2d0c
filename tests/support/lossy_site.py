"""A recording of the page of clients/origin.py that lacks some responses."""

from pathlib import Path

from record.site import Recording, Site, write_site

LOST = ("https://static.origin.example/code.js", "https://static.origin.example/style.css")


def lose(folder: Path) -> None:
    """Remove `LOST` from the site in `folder`; a complete copy, for comparison, stays next to the sites."""
    site = Site.load(folder)
    kept = tuple(site.recorded(e) for e in site.exchanges if e.url not in LOST)
    whole = Recording(site.url, tuple(site.recorded(e) for e in site.exchanges), site.recorder)
    write_site(whole, folder.parents[1] / "whole")
    write_site(Recording(site.url, kept, site.recorder, site.user_agent, site.viewport), folder)
