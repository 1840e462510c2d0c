"""What a shell completes of a command line beside commands and options: names of networks, protocols, sites, campaigns.

click does the rest (`click.shell_completion`). A completion only looks: it generates no demo site, and says nothing of
a file that cannot be read.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from base.errors import EyelevelError
from base.places import RESULTS
from browsers.registry import all_browsers
from dataset.table import DOCUMENT
from record.collection import available_names
from tuning import devices, networks, protocols
from tuning.settings import Catalogue

ALL = "all"


def _with_groups(settings: Catalogue[Any]) -> Iterable[str]:
    return dict.fromkeys([*settings, *settings.groups, ALL])


def _campaigns(context: click.Context) -> Iterable[str]:
    results: Path = context.params.get("results") or RESULTS
    return sorted(file.parent.name for file in results.glob(f"*/{DOCUMENT}"))


# By the option, or the argument: all names that its value, or one of a list, can be.
NAMES: dict[str, Callable[[click.Context], Iterable[str]]] = {
    "--net": lambda context: _with_groups(networks.load()),
    "--proto": lambda context: _with_groups(protocols.load()),
    "--sites": lambda context: [*available_names(), ALL],
    "--site": lambda context: available_names(),
    "--browser": lambda context: all_browsers(),
    "--device": lambda context: _with_groups(devices.load()),
    "--campaign": _campaigns,
    "--a": _campaigns,
    "--b": _campaigns,
    "--against": _campaigns,
    "campaign": _campaigns,
    "campaigns": _campaigns,
}


class Names(click.types.StringParamType):
    """A text that is a name, or a list of names separated by commas, of which the last one is completed."""

    def __init__(self, names: Callable[[click.Context], Iterable[str]]) -> None:
        self._names = names

    def shell_complete(self, context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The `incomplete` text with each name that its end may become."""
        *before, last = incomplete.split(",")
        try:
            names = [name for name in self._names(context) if name.startswith(last) and name not in before]
        except EyelevelError:
            return []
        return [CompletionItem(",".join([*before, name])) for name in names]


def complete_names(command: click.Command) -> click.Command:
    """`command`, whose options and arguments that take names complete them."""
    for parameter in command.params:
        names = next((NAMES[one] for one in (*parameter.opts, parameter.name) if one in NAMES), None)
        if names and type(parameter.type) is click.types.StringParamType:
            parameter.type = Names(names)
    return command
