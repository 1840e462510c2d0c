"""The contract of instruments: what they do around a load, and how the files that they left are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.registry import registered
from dataset.columns import Column

if TYPE_CHECKING:
    from measure.host.affinity import Layout
    from record.site import Site
    from tuning.networks import Network
    from tuning.protocols import Protocol

# The readings of a run by the names of their columns; None where the instrument could not say.
Readings = Mapping[str, float | None]


@dataclass(frozen=True)
class ObservedLoad:
    """A load that is about to begin: the process `root` that all of its processes descend from, the site, the network
    and the protocol, the name of the browser, which cores do what, and the folder for what instruments leave.
    `await_ready` returns when the browser shows an empty page."""

    root: int
    site: Site
    network: Network
    protocol: Protocol
    browser: str
    layout: Layout | None
    folder: Path
    await_ready: Callable[[], None]


@dataclass(frozen=True)
class FinishedRun:
    """A run whose instruments are read: its folder, the account that its replay left (`replay.json`), and from when to
    when (s since 1970) its page loaded, None of a load that failed."""

    folder: Path
    account: Mapping[str, Any]
    load_s: tuple[float, float] | None


class Instrument:
    """An instrument. A subclass overrides what it needs, and leaves its files in the run's folder."""

    name: str
    # The columns of `runs.csv` that `read` fills.
    columns: tuple[Column, ...] = ()

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """Is entered before the load begins and left when nothing is measured any more, outside the replay. Raises
        EyelevelError, which fails the load."""
        return nullcontext()

    def around_visit(self, folder: Path) -> AbstractContextManager[None]:
        """Is entered before the browser starts and left after its end, in its network namespace and process. Raises
        EyelevelError, which fails the load."""
        return nullcontext()

    def read(self, run: FinishedRun) -> Readings:
        """The readings of `run`, nothing where the instrument left nothing. Reading again gives the same. Raises
        EyelevelError, which is a failure of the load."""
        return {}


@cache
def instruments() -> tuple[Instrument, ...]:
    """All instruments, in order of their names."""
    from measure import instruments as package

    return tuple(registered(package, "INSTRUMENT").values())


def instrument_columns() -> dict[str, dict[str, Any]]:
    """The columns of all instruments, by name, as fields of a Table Schema."""
    return {column.name: column.field() for instrument in instruments() for column in instrument.columns}
