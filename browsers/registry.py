"""The browsers by name, and the devices that they are on: `chromium-on-phone-mid`."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import browsers
from base.errors import EyelevelError
from base.registry import registered
from browsers.contract import Browser
from tuning import devices
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import DESKTOP, ON, Device
from tuning.settings import choose, choose_one


@cache
def all_browsers() -> Mapping[str, Browser]:
    """Every browser by its name."""
    return registered(browsers, "BROWSER")


def browser_named(name: str) -> Browser:
    """The browser of this name, whatever the device. Raises EyelevelError when there is none."""
    known = all_browsers()
    name = name.partition(ON)[0]
    if name not in known:
        raise EyelevelError(f"there is no browser {name!r}; there are {', '.join(known)}")
    return known[name]


def device_of(name: str) -> Device | None:
    """The device of a browser of this name; None when it is this machine. Raises EyelevelError when there is none."""
    device = name.partition(ON)[2]
    return choose_one("device", device, devices.load()) if device else None


def on_device(browser: str, device: str) -> str:
    """What the browser of this name is called on the device of that name."""
    return browser if device == DESKTOP else f"{browser}{ON}{device}"


def on_devices(programs: Iterable[str], wanted: str | Iterable[str]) -> list[str]:
    """What the browsers of these names are called on each of the devices that are `wanted`. Raises EyelevelError."""
    known = {DESKTOP: DESKTOP} | {name: name for name in devices.load()}
    chosen = choose("device", wanted, known)
    return [on_device(program, device) for program in programs for device in chosen]


def described(name: str) -> str:
    """A browser of this name to a reader: `Chromium on phone-mid`."""
    browser, _, device = name.partition(ON)
    return f"{browser.capitalize()} on {device}" if device else browser.capitalize()


def is_browser(name: str) -> bool:
    """Whether this is a browser's name, on whatever device."""
    return name.partition(ON)[0] in all_browsers()


def browser_of(folder: Path) -> Browser:
    """The browser that made the load in `folder`, by the log that it left; the default when it left none."""
    made_by = [browser for browser in all_browsers().values() if (folder / browser.network_log).exists()]
    return made_by[0] if made_by else browser_named(DEFAULT_BROWSER)
