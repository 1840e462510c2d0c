"""Prepares the next run while the run before it ends and its film is analysed, since nothing is measured then. With
idle priority (`measure.host.idle_priority`), preparing begins earlier, in that run's quiet time."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from base.errors import EyelevelError
from dataset.table import Run
from measure.campaign.method import Method, is_made
from measure.campaign.store import FolderStore
from measure.host.affinity import Layout
from measure.host.idle_priority import IdlePriority
from measure.run.load import Load
from measure.run.setting import Setting

# Returns the next run and its setting; None when none is known.
NextRun = Callable[[], tuple[Run, Setting] | None]

# A browser that has run for longer than this (s) differs from one that was just started.
STALE_S = 30.0


class Preparer:
    """Prepares one run at a time before its turn; early, if `idle` priority is available. When the context ends, a
    prepared run that was not taken is ended, and its folder is removed."""

    def __init__(self, store: FolderStore, idle: IdlePriority | None = None) -> None:
        self._store = store
        self.idle = idle
        self._load: Load | None = None

    def __enter__(self) -> "Preparer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    def prepare(self, next_run: NextRun, method: Method, layout: Layout | None, *, early: bool = False) -> bool:
        """Begin to prepare the next attempt at the `next_run`, if there is one and it may be prepared. If it is already
        being prepared at idle priority, lift it to ordinary priority. Returns whether something is prepared.

        `early`: prepare at idle priority, or do nothing if that is not available. Errors are not raised, since they
        would count against the run that is ending; the next run is then made without preparation.
        """
        if early and not self.idle:
            return False
        pair = next_run()
        # A preparation that failed at idle priority, perhaps by a time limit, may succeed at ordinary priority.
        if not early and self._load and pair and self._is_of(pair[0]) and not self._load.has_ended():
            with suppress(EyelevelError):
                self._load.lift()
                return True
        self._drop()
        if not pair:
            return False
        run, setting = pair
        attempt = self._store.attempts(run) + 1
        if is_made(self._store.run_folder(run, attempt)):
            return False  # it was made before the campaign was stopped
        with suppress(OSError, EyelevelError):
            folder = self._store.empty_run_folder(run, attempt)
            self._load = method.prepare(setting, layout, folder, attempt, idle=self.idle if early else None)
            if not self._load:
                folder.rmdir()
        return self._load is not None

    def settle(self, run: Run) -> None:
        """Wait until the load prepared for `run` is ready; end a load prepared for another run. Afterwards, nothing is
        being prepared."""
        if self._load and self._is_of(run):
            self._load.await_ready()
        else:
            self._drop()

    def take(self, run: Run) -> Load | None:
        """The prepared load of `run`, which the caller must end; None if there is none, or if it is older than
        STALE_S."""
        if self._load and self._is_of(run) and self._load.age_s() < STALE_S:
            load, self._load = self._load, None
            return load
        self._drop()
        return None

    def _is_of(self, run: Run) -> bool:
        folder = self._store.run_folder(run, self._store.attempts(run) + 1)
        return self._load is not None and self._load.folder == folder

    def _drop(self) -> None:
        """End the prepared load, and remove its folder."""
        if self._load:
            load, self._load = self._load, None
            load.close()
            shutil.rmtree(load.folder, ignore_errors=True)
