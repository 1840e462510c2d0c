"""The clients of a campaign: its networks, each in each of its browsers. Protocols are compared within a client.

A client's name is its network's in the first browser, and `lte@firefox` in another: no table changes when a campaign
gets a second browser.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import DESKTOP, IN_BROWSER, browser_and_device, on_device


@dataclass(frozen=True)
class Client:
    """A browser on a device on a network, by their names."""

    network: str
    browser: str
    device: str = DESKTOP

    @property
    def program(self) -> str:
        """The browser on the device, as a campaign names it."""
        return on_device(self.browser, self.device)


def client_name(network: str, program: str, first: str) -> str:
    """The name of the client of `network` and `program`, a browser on a device; `first` is the campaign's first."""
    return network if program == first else f"{network}{IN_BROWSER}{program}"


def clients_of(networks: Iterable[str], programs: Iterable[str]) -> dict[str, Client]:
    """The clients of these networks and programs by name: all of the first program (Chromium, where no program is
    known), then all of the next one."""
    first, *further = tuple(programs) or (DEFAULT_BROWSER,)
    return {
        client_name(network, program, first): Client(network, *browser_and_device(program))
        for program in (first, *further)
        for network in networks
    }
