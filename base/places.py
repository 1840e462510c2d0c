"""Where `make setup` installs programs, and where sites and results are; a missing program is one clear error."""

import os
import re
import shutil
from pathlib import Path

from base.errors import EyelevelError

PROJECT = Path(__file__).resolve().parent.parent
SITES = PROJECT / "sites"
RESULTS = PROJECT / "results"


def cache_dir() -> Path:
    """The user's cache folder for builds and downloads; `EYELEVEL_CACHE` overrides it."""
    if override := os.environ.get("EYELEVEL_CACHE"):
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "eyelevel"


def ca_certificate() -> Path:
    """The certificate of this machine's certificate authority (`servers.certificates` makes it)."""
    return cache_dir() / "ca" / "certificate.pem"


def tool(name: str) -> Path:
    """The absolute path of an installed program.

    `make setup` links what it builds (`mm-*`, `quic_server`) and what npm installs (`node`, `browsertime`) into `bin/`
    of the cache, which is searched before the system's folders.

    Raises EyelevelError when it is not installed; the message says which set-up installs it.
    """
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    path = shutil.which(name, path=f"{cache_dir() / 'bin'}:{system}")
    if path is None:
        raise EyelevelError(f"the program {name} is not installed; run '{setup_of(name)}'")
    return Path(path)


def setup_of(program: str) -> str:
    """The command that installs `program`: some are installed only when they are asked for (`setup/optional/`)."""
    for step in sorted((PROJECT / "setup" / "optional").glob("*/*.sh")):
        programs = re.search(r'^programs="(.*)"$', step.read_text(), re.MULTILINE)
        if programs and program in programs[1].split():
            return f"make setup {step.parent.name.upper()}={step.stem}"
    return "make setup"
