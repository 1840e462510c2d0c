"""One setting under several names: `tcp,tcp` is the protocol tcp twice, as `tcp` and `tcp~2`.

A campaign of a setting against itself (A/A) must find no difference.
"""

from collections.abc import Iterable
from dataclasses import replace

from tuning.protocols import Protocol
from tuning.settings import Settings, choose

SEPARATOR = "~"


def choose_protocols(wanted: str | Iterable[str], known: Settings[Protocol]) -> list[Protocol]:
    """The protocols that `wanted` names (as in `tuning.settings.choose`), a repeated one again under a new name.

    Raises EyelevelError that names the allowed ones.
    """
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else list(wanted)
    choose("protocol", [base_name(name) for name in names], known)
    chosen: dict[str, Protocol] = {}
    for name in names:
        for protocol in choose("protocol", [base_name(name)], known):
            alias = name if base_name(name) != name else protocol.name
            number = 2
            while alias in chosen:
                alias, number = f"{protocol.name}{SEPARATOR}{number}", number + 1
            chosen[alias] = replace(protocol, name=alias)
    return list(chosen.values())


def base_name(name: str) -> str:
    """The protocol that `name` stands for."""
    base, separator, number = name.rpartition(SEPARATOR)
    return base if separator and number.isdecimal() else name


def distinct(protocols: Iterable[Protocol]) -> list[Protocol]:
    """`protocols`, each once and under its own name."""
    return list({base_name(one.name): replace(one, name=base_name(one.name)) for one in protocols}.values())
