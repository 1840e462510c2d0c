"""Recordings in other formats, one file each: reading them, and for some writing them too."""

from pathlib import Path
from typing import Protocol

from record.site import Recording, Site


class Format(Protocol):
    """What a module of this folder offers; `record.__main__` lists them."""

    def recognises(self, path: Path) -> bool:
        """Whether `path` is a recording in this format."""

    def read(self, path: Path, *, keep_cookies: bool = False) -> Recording:
        """The recording at `path`, broken parts left out and named. Raises EyelevelError.

        Without `keep_cookies` their values are replaced by stand-ins.
        """


class WritableFormat(Format, Protocol):
    """A format that sites can be handed on in."""

    def write(self, site: Site, path: Path) -> None:
        """Write `site` to `path`; what was there is replaced once the new is complete."""
