"""The contract of instruments: what they do around a load, and how their files are read afterwards."""

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

# Column name → reading of a run; None if the instrument could not measure it.
Readings = Mapping[str, float | None]


@dataclass(frozen=True)
class ObservedLoad:
    """A load that is about to begin: `root`, the process from which all its processes descend; its site, network and
    protocol; the browser's name; which cores do what; and the folder for the instruments' files. `await_ready` returns
    when the browser shows an empty page. `processor_share`: the share of a processor that each process of the browser
    and the servers gets; None if the method sets none."""

    root: int
    site: Site
    network: Network
    protocol: Protocol
    browser: str
    layout: Layout | None
    folder: Path
    await_ready: Callable[[], None]
    processor_share: float | None = None


@dataclass(frozen=True)
class FinishedRun:
    """A run whose instruments are read: its folder, the account of its replay (`replay.json`), and the beginning and
    end of its page's load (s since 1970; None if the load failed)."""

    folder: Path
    account: Mapping[str, Any]
    load_s: tuple[float, float] | None


class Instrument:
    """An instrument. A subclass overrides what it needs, and writes its files into the run's folder."""

    name: str
    # The columns of `runs.csv` that `read` fills.
    columns: tuple[Column, ...] = ()

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """A context around the load, outside the replay: entered before the load begins, left when nothing is measured
        any more. Raises EyelevelError, which fails the load."""
        return nullcontext()

    def around_visit(self, folder: Path) -> AbstractContextManager[None]:
        """A context in the browser's network namespace and the process that drives it: entered before the browser
        starts, left after it has ended. Raises EyelevelError, which fails the load."""
        return nullcontext()

    def read(self, run: FinishedRun) -> Readings:
        """The readings of `run`; empty if the instrument left no files. Reading again gives the same. Raises
        EyelevelError, which counts as a failure of the load."""
        return {}


@cache
def instruments() -> tuple[Instrument, ...]:
    """All instruments, sorted by name."""
    from measure import instruments as package

    return tuple(registered(package, "INSTRUMENT").values())


def instrument_columns() -> dict[str, dict[str, Any]]:
    """The columns of all instruments, by name, as fields of a Table Schema."""
    return {column.name: column.field() for instrument in instruments() for column in instrument.columns}
