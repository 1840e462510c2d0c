"""The devices on which pages are loaded (`devices.toml`), and names of browsers on them: `chromium-on-phone-mid`."""

from collections.abc import Iterable
from dataclasses import dataclass

from tuning.settings import Reader, choose, choose_one

# This machine without emulation, and the window in which a site was recorded.
DESKTOP = "desktop"
# Browsers that readers know by these names.
PRODUCTS = ("chromium", "firefox")
# Separates the names of a browser and its device.
ON = "-on-"
# On a campaign's second and further browsers, a network is called `lte@firefox`. No network's own name contains this
# sign.
IN_BROWSER = "@"
# Lighthouse's BenchmarkIndex; the fastest processors reach a few thousand. A slower device than these would get less
# than a tenth of a fast processor's time. The kernel does not grant so small a share evenly: the index varied by 15 %.
LEAST_INDEX, MOST_INDEX = 200, 5000
MOST_CORES = 16
# How long a pace check takes (s): the start of the benchmark, and its trials on each device.
PACE_CHECK_S, PACE_CHECK_OF_DEVICE_S = 3.0, 6.5


@dataclass(frozen=True)
class Device:
    """A phone.

    `width` and `height` are its window in CSS pixels; it has several device pixels for each in a row. It tells servers
    its `model`. Its processor has `cores`, each with a BenchmarkIndex of `index`.
    """

    name: str
    model: str
    width: int
    height: int
    pixel_ratio: float
    index: float
    cores: int


def checked(device: Device) -> Device:
    """`device`, if such a device is possible. Raises ValueError with the fault."""
    if device.name == DESKTOP or ON in device.name:
        raise ValueError(
            f"a device cannot be called {device.name!r}: {DESKTOP} is this machine, and {ON!r} joins names"
        )
    # Encoders of films require this.
    for name, pixels in (("width", device.width), ("height", device.height)):
        if pixels % 2 or not 200 <= pixels <= 4000:
            raise ValueError(f"{name} must be an even number from 200 to 4000")
    if not 1 <= device.pixel_ratio <= 5:
        raise ValueError("pixel_ratio must be from 1 to 5")
    if not LEAST_INDEX <= device.index <= MOST_INDEX:
        raise ValueError(f"index must be from {LEAST_INDEX} to {MOST_INDEX}")
    if not 1 <= device.cores <= MOST_CORES:
        raise ValueError(f"cores must be from 1 to {MOST_CORES}")
    return device


def require_network_name(name: str) -> None:
    """Raise ValueError when `name` cannot be a network's name, because it contains the sign for a network in a further
    browser."""
    if IN_BROWSER in name:
        raise ValueError(f"{name!r} is not a name for a network: {IN_BROWSER!r} stands before a browser's name")


# Every device by name.
load = Reader("devices.toml", Device, checked, units={}).load


def device_of(name: str) -> Device | None:
    """The device of the browser called `name`; None for this machine. Raises EyelevelError when the device does not
    exist."""
    _, device = browser_and_device(name)
    return None if device == DESKTOP else choose_one("device", device, load())


def browser_and_device(name: str) -> tuple[str, str]:
    """The names of the browser and of the device in `name`: the inverse of `on_device`."""
    browser, _, device = name.partition(ON)
    return browser, device or DESKTOP


def on_device(browser: str, device: str) -> str:
    """The name of this browser on this device."""
    return browser if device == DESKTOP else f"{browser}{ON}{device}"


def on_devices(programs: Iterable[str], wanted: str | Iterable[str]) -> list[str]:
    """The names of these browsers on each of the `wanted` devices. Raises EyelevelError."""
    known = {DESKTOP: DESKTOP} | {name: name for name in load()}
    chosen = choose("device", wanted, known)
    return [on_device(program, device) for program in programs for device in chosen]


def described(name: str) -> str:
    """The browser called `name` in words for a reader: `Chromium on phone-mid`. A name that a user gave is as given."""
    browser, device = browser_and_device(name)
    words = browser.capitalize() if browser in PRODUCTS else browser
    return words if device == DESKTOP else f"{words} on {device}"
