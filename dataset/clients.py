"""The clients of a campaign: each of its networks in each of its browsers. Protocols are compared within a client.

In the first browser, a client has the name of its network; in another browser it is `lte@firefox`. So no table changes
if a campaign gets a second browser.
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
        """The browser on the device, by its name in campaigns."""
        return on_device(self.browser, self.device)


def client_name(network: str, program: str, first: str) -> str:
    """The name of the client of `network` and `program`, a browser on a device; `first` is the campaign's first
    program."""
    return network if program == first else f"{network}{IN_BROWSER}{program}"


def clients_of(networks: Iterable[str], programs: Iterable[str]) -> dict[str, Client]:
    """The clients of these networks and programs by name, in the order of the programs. Without programs, the program
    is Chromium."""
    first, *further = tuple(programs) or (DEFAULT_BROWSER,)
    return {
        client_name(network, program, first): Client(network, *browser_and_device(program))
        for program in (first, *further)
        for network in networks
    }
