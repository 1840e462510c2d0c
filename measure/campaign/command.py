"""What the commands that measure into a campaign's folder share: its name, who may, and how they end."""

import errno
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from base.errors import EyelevelError
from base.ownership import give_to_caller


def campaign_name(name: str | None) -> str:
    """`name` if it can be a folder's name, or one made of the time of day. Raises EyelevelError."""
    if name is None:
        return time.strftime("%Y%m%d-%H%M%S")
    if name != Path(name).name or name.startswith("."):
        raise EyelevelError(f"a campaign is a folder in results/, and {name!r} cannot be its name")
    return name


@contextmanager
def going_on(folder: Path, again: str) -> Iterator[None]:
    """Measure into the campaign's `folder` while the block runs; `again` is the command that goes on with it.

    Ends the process when it is told to stop. Raises EyelevelError when the disk is full.
    """
    if not folder.parent.exists():
        folder.parent.mkdir(parents=True)
        give_to_caller(folder.parent)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what was measured is in {folder}; to go on: {again}", err=True)
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        told = f"the disk of {folder} is full; what was measured is safe; free some of it, then go on: {again}"
        raise EyelevelError(told) from None


def interrupt(*_: object) -> None:
    """End like Ctrl-C does."""
    raise KeyboardInterrupt
