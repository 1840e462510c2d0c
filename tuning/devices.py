"""Devices that pages are loaded on, from `devices.toml`, and the names of browsers on them: `chromium-on-phone-mid`."""

from collections.abc import Iterable
from dataclasses import dataclass

from tuning.settings import Reader, choose, choose_one

# This machine as it is, and the window that a site was recorded in.
DESKTOP = "desktop"
# Stands between the names of a browser and of the device that it is on.
ON = "-on-"
# A network in another browser than the first of a campaign is called `lte@firefox`. No network's own name has it.
IN_BROWSER = "@"
# BenchmarkIndex of Lighthouse; those of the fastest processors are some thousand. Slower devices than the slowest here
# would get less than a tenth of a fast processor, which the kernel does not give evenly: their index scattered by 15 %.
LEAST_INDEX, MOST_INDEX = 200, 5000
MOST_CORES = 16
# Duration of a pace check (s): the benchmark's start, and its trials on each device.
PACE_CHECK_S, PACE_CHECK_OF_DEVICE_S = 3.0, 6.5


@dataclass(frozen=True)
class Device:
    """A phone: the `width` and `height` of its window (CSS pixels), how many of its own pixels each of these has in a
    row, the `model` that it tells servers, and its processor: a BenchmarkIndex of `index` for each of `cores`."""

    name: str
    model: str
    width: int
    height: int
    pixel_ratio: float
    index: float
    cores: int


def checked(device: Device) -> Device:
    """`device`, if one can be like that. Raises ValueError with what is wrong with it."""
    if device.name == DESKTOP or ON in device.name:
        raise ValueError(
            f"a device cannot be called {device.name!r}: {DESKTOP} is this machine, and {ON!r} joins names"
        )
    # As encoders of films want them.
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
    """Raises ValueError when no network can be called `name`, since that is a network's name in a browser."""
    if IN_BROWSER in name:
        raise ValueError(f"{name!r} is no name for a network: {IN_BROWSER!r} stands before a browser's name")


# Every device by name.
load = Reader("devices.toml", Device, checked, units={}).load


def device_of(name: str) -> Device | None:
    """The device of a browser of this name; None when it is this machine. Raises EyelevelError when there is none."""
    _, device = browser_and_device(name)
    return None if device == DESKTOP else choose_one("device", device, load())


def browser_and_device(name: str) -> tuple[str, str]:
    """The names of the browser and of the device in the `name` of a browser on a device, as `on_device` makes it."""
    browser, _, device = name.partition(ON)
    return browser, device or DESKTOP


def on_device(browser: str, device: str) -> str:
    """The name that the browser of this name has on the device of that name."""
    return browser if device == DESKTOP else f"{browser}{ON}{device}"


def on_devices(programs: Iterable[str], wanted: str | Iterable[str]) -> list[str]:
    """The names that these browsers have on each of the devices that are `wanted`. Raises EyelevelError."""
    known = {DESKTOP: DESKTOP} | {name: name for name in load()}
    chosen = choose("device", wanted, known)
    return [on_device(program, device) for program in programs for device in chosen]


def described(name: str) -> str:
    """A browser of this name to a reader: `Chromium on phone-mid`."""
    browser, device = browser_and_device(name)
    return browser.capitalize() if device == DESKTOP else f"{browser.capitalize()} on {device}"
