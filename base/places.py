"""Where `make setup` installs programs, and where sites and results are; a missing program is one clear error."""

import fcntl
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError

PROJECT = Path(__file__).resolve().parent.parent
# Whether this is a checkout. If not, pip has installed the package, which can then read results but not measure.
IS_CHECKOUT = (PROJECT / "setup" / "setup.sh").exists()
# 'eyelevel init' writes this file into a folder of the user's own.
OWN_MARK = ".eyelevel"


def _mark() -> tuple[Path, int] | None:
    """The mark in the working folder or the nearest above it, and its owner; None if there is none, or if the working
    folder is in the checkout."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    for folder in () if here.is_relative_to(PROJECT) else (here, *here.parents):
        with suppress(OSError):
            status = (mark := folder / OWN_MARK).lstat()
            if stat.S_ISREG(status.st_mode):
                return mark, status.st_uid
    return None


def _is_user(owner: int) -> bool:
    """Whether `owner` is the user, or the one who called sudo."""
    return owner == os.geteuid() or (os.geteuid() == 0 and str(owner) == os.environ.get("SUDO_UID"))


def own_folder() -> Path | None:
    """The user's own folder that is the working folder or has it; None if there is none. Somebody else's does not
    count: whoever works in a folder does not trust it."""
    mark, owner = _mark() or (None, os.geteuid())
    return mark.parent if mark and _is_user(owner) else None


def foreign_mark() -> str:
    """Why the mark of the folder in which the user works does not count; empty if it counts or there is none."""
    mark, owner = _mark() or (None, os.geteuid())
    return "" if _is_user(owner) else f"{mark} belongs to user {owner} and counts only for that user"


WORK = (own_folder() or PROJECT) if IS_CHECKOUT else Path.cwd()
SITES = WORK / "sites"
RESULTS = WORK / "results"
# The folder of an answer's campaign there has this prefix and the site's name, unless another name is given.
ANSWER_PREFIX = "answer-"
MEASURING = "measuring needs a checkout of Eyelevel with 'make setup'"


def cache_dir() -> Path:
    """The user's cache folder for builds and downloads; `EYELEVEL_CACHE` overrides it."""
    if override := os.environ.get("EYELEVEL_CACHE"):
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "eyelevel"


def use_cache() -> None:
    """Prevent set-ups from replacing installed files until this process ends (`setup/common.sh`).

    Raises EyelevelError when a set-up is replacing them now. Does nothing if nothing was set up, or if the file system
    has no locks.
    """
    try:
        # This descriptor is never closed, and no child inherits it.
        descriptor = os.open(cache_dir() / "CACHEDIR.TAG", os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise EyelevelError(f"a set-up is renewing {cache_dir()}; wait until it ends") from None
    except OSError:
        return


def ca_certificate() -> Path:
    """The certificate of this machine's certificate authority (`servers.certificates` makes it)."""
    return cache_dir() / "ca" / "certificate.pem"


def tool(name: str) -> Path:
    """The absolute path of an installed program.

    `make setup` links what it builds (`mm-*`, `quic_server`, `browsertime-bundle`) and what npm installs (`node`,
    `browsertime`) into `bin/` of the cache, which is searched before the system's folders.

    Raises EyelevelError when it is not installed; the message names the set-up that installs it.
    """
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    path = shutil.which(name, path=f"{cache_dir() / 'bin'}:{system}")
    if path is None:
        way = f"run '{setup_of(name)}'" if IS_CHECKOUT else MEASURING
        raise EyelevelError(f"the program {name} is not installed; {way}")
    return Path(path)


def setup_of(program: str) -> str:
    """The command that installs `program`: some are installed only on request (`setup/optional/`)."""
    for step in sorted((PROJECT / "setup" / "optional").glob("*/*.sh")):
        programs = re.search(r'^programs="(.*)"$', step.read_text(), re.MULTILINE)
        if programs and program in programs[1].split():
            return f"make setup {step.parent.name.upper()}={step.stem}"
    return "make setup"
