"""The browsers by name."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import browsers
from base.errors import EyelevelError
from base.registry import registered
from browsers.contract import Browser
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import browser_and_device


@cache
def all_browsers() -> Mapping[str, Browser]:
    """Every browser by its name."""
    return registered(browsers, "BROWSER")


def browser_named(name: str) -> Browser:
    """The browser called `name`, which may include a device. Raises EyelevelError when there is none."""
    known = all_browsers()
    name, _ = browser_and_device(name)
    if name not in known:
        raise EyelevelError(f"there is no browser {name!r}; there are {', '.join(known)}")
    return known[name]


def browser_of(folder: Path) -> Browser:
    """The browser that made the load in `folder`, recognised by its log; the default browser if there is no log."""
    made_by = [browser for browser in all_browsers().values() if (folder / browser.network_log).exists()]
    return made_by[0] if made_by else browser_named(DEFAULT_BROWSER)
