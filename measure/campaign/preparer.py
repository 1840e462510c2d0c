"""The next run, prepared while the one before it ends and its film is analysed: nothing is measured then."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from base.errors import EyelevelError
from measure.campaign.method import Method, is_made
from measure.campaign.store import FolderStore
from measure.host.affinity import Layout
from measure.run.load import Load
from measure.run.setting import Setting
from measure.table import Run

# Says which run is next, with its setting, as far as is known; None when none is.
NextRun = Callable[[], tuple[Run, Setting] | None]

# A browser that has been there for longer is another than one that has just been started.
STALE_S = 30.0


def no_next_run() -> None:
    """No run is known to be next."""


class Preparer:
    """At most one run that is prepared before its turn. What nobody has taken ends with the context, and its folder."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store
        self._load: Load | None = None

    def __enter__(self) -> "Preparer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    def prepare(self, next_run: NextRun, method: Method, layout: Layout | None) -> None:
        """Begin to prepare the next attempt at the `next_run`, if there is one and it may be prepared.

        A fault is not told here, where it would be one of the run that is ending: the run is made without then.
        """
        self._drop()
        if not (pair := next_run()):
            return
        run, setting = pair
        attempt = self._store.attempts(run) + 1
        if is_made(self._store.run_folder(run, attempt)):
            return  # before a stop
        with suppress(OSError, EyelevelError):
            folder = self._store.empty_run_folder(run, attempt)
            self._load = method.prepare(setting, layout, folder, attempt)
            if not self._load:
                folder.rmdir()

    def settle(self, run: Run) -> None:
        """Wait until what is prepared of `run` is ready, or end what is of another: nothing happens any more."""
        if self._load and self._is_of(run):
            self._load.await_ready()
        else:
            self._drop()

    def take(self, run: Run) -> Load | None:
        """What has been prepared of `run`, lately, for its taker to end; None if nothing has been."""
        if self._load and self._is_of(run) and self._load.age_s() < STALE_S:
            load, self._load = self._load, None
            return load
        self._drop()
        return None

    def _is_of(self, run: Run) -> bool:
        folder = self._store.run_folder(run, self._store.attempts(run) + 1)
        return self._load is not None and self._load.folder == folder

    def _drop(self) -> None:
        """End what has been prepared, without a trace."""
        if self._load:
            load, self._load = self._load, None
            load.close()
            shutil.rmtree(load.folder, ignore_errors=True)
