"""Several names for one protocol: `tcp,tcp` means the protocol tcp twice, as `tcp` and `tcp~2`.

A campaign of a protocol against itself (A/A) must find no difference.
"""

from collections.abc import Iterable
from dataclasses import replace

from servers.registry import require_served
from tuning.protocols import Protocol
from tuning.settings import Catalogue, choose, choose_one

SEPARATOR = "~"


def choose_protocols(wanted: str | Iterable[str], known: Catalogue[Protocol]) -> list[Protocol]:
    """The protocols that `wanted` names (as in `tuning.settings.choose`); a repeated one gets a new name.

    They are complete: with all that their servers need (`servers.registry`). Raises EyelevelError for an unknown name,
    or when a server cannot serve one.
    """
    names = wanted.replace(",", " ").split() if isinstance(wanted, str) else list(wanted)
    bases = [base_name(name) for name in names]
    require_served(choose("protocol", " ".join(bases) if isinstance(wanted, str) else bases, known), known.places)
    chosen: dict[str, Protocol] = {}
    for name in names:
        for protocol in require_served(choose("protocol", [base_name(name)], known)):
            alias = name if base_name(name) != name else protocol.name
            number = 2
            while alias in chosen:
                alias, number = f"{protocol.name}{SEPARATOR}{number}", number + 1
            chosen[alias] = replace(protocol, name=alias)
    return list(chosen.values())


def choose_protocol(wanted: str, known: Catalogue[Protocol]) -> Protocol:
    """The one protocol that `wanted` names, with all that its server needs. Raises EyelevelError."""
    return require_served([choose_one("protocol", wanted, known)], known.places)[0]


def base_name(name: str) -> str:
    """The name of the protocol that the alias `name` stands for."""
    base, separator, number = name.rpartition(SEPARATOR)
    return base if separator and number.isdecimal() else name


def distinct(protocols: Iterable[Protocol]) -> list[Protocol]:
    """`protocols` without repetitions, under their original names."""
    named = (replace(protocol, name=base_name(protocol.name)) for protocol in protocols)
    return list({protocol.name: protocol for protocol in named}.values())
