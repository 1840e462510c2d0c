"""The next run of a block, prepared while the one before it ends and its film is analysed: nothing is measured then."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

from measure.campaign.method import Method
from measure.campaign.store import FolderStore
from measure.host.affinity import Layout
from measure.run.load import Load
from measure.run.setting import Setting
from measure.table import Run


class Ahead:
    """At most one run that is prepared before its turn. What nobody has taken ends with the context, and its folder."""

    def __init__(
        self, settings: Mapping[Run, Setting], method: Method, store: FolderStore, layout: Layout | None
    ) -> None:
        self._settings, self._method, self._store, self._layout = settings, method, store, layout
        self._prepared: tuple[Run, Load] | None = None

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop()

    def prepare(self, run: Run | None) -> None:
        """Begin to prepare the next attempt at `run`, if there is one and it may be prepared.

        A fault is not told here, where it would be one of the run that is ending: the run is made without then.
        """
        self._drop()
        if not run:
            return
        attempt = self._store.attempts(run) + 1
        with suppress(OSError):
            folder = self._store.empty_run_folder(run, attempt)
            if load := self._method.prepare(self._settings[run], self._layout, folder, attempt):
                self._prepared = run, load
            else:
                folder.rmdir()

    def take(self, run: Run) -> Load | None:
        """What has been prepared of `run`, for its taker to end; None if nothing has been."""
        if self._prepared and self._prepared[0] == run:
            (_, load), self._prepared = self._prepared, None
            return load
        self._drop()
        return None

    def _drop(self) -> None:
        """End what has been prepared, without a trace."""
        if self._prepared:
            (_, load), self._prepared = self._prepared, None
            load.close()
            shutil.rmtree(load.folder, ignore_errors=True)
