"""One recording format a file; each turns a path into the exchanges that `record.site` stores."""

from pathlib import Path
from typing import Protocol

from record.site import Recording


class Importer(Protocol):
    """What a module of this folder offers; `record.__main__` lists them."""

    def recognises(self, path: Path) -> bool:
        """Whether `path` is a recording of this kind."""

    def read(self, path: Path) -> Recording:
        """The recording at `path`, broken parts left out and named. Raises EyelevelError."""
