"""The identity of a program: the version that it prints, and a digest of its files."""

import hashlib
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from base.errors import EyelevelError

# The files beside a program that belong to it: shared libraries, resources (Chromium's .pak, Firefox's omni.ja), data.
BELONGING = re.compile(r".+\.(so(\.\d+)*|pak|ja|bin|dat)")
PRINT_LIMIT_S = 30


def output_of(command: list[str]) -> str:
    """The output of `command`, or its errors if there is none; empty if it fails."""
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=PRINT_LIMIT_S, check=False)
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return ""
    return completed.stdout.strip() or completed.stderr.strip() if completed.returncode == 0 else ""


def printed_version(program: Path, option: str) -> str:
    """The first line that `program` prints with `option`; empty if it fails or prints nothing."""
    return _printed_version(program, option, _states([program]))


# A process may outlive a program: a worker of a cluster measures many campaigns. So what is known of a program is known
# only for the files as they are.
@cache
def _printed_version(program: Path, option: str, _states: tuple[object, ...]) -> str:
    return output_of([str(program), option]).partition("\n")[0].strip()


def digest_of_program(program: Path, *, with_files: bool = False) -> str:
    """The SHA-256 of `program`; `with_files`: followed by the files beside it that belong to it, in order of names.

    It is that of the program alone if there are no such files. Raises EyelevelError.
    """
    program = program.resolve()
    try:
        beside = sorted(program.parent.iterdir()) if with_files else []
        belonging = [path for path in beside if BELONGING.fullmatch(path.name) and path.is_file() and path != program]
        files = (program, *belonging)
        return _digest(files, _states(files))
    except OSError as error:
        raise EyelevelError(f"{program} cannot be read: {error.strerror}") from None


@cache
def _digest(files: tuple[Path, ...], _states: tuple[object, ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _states(files: Iterable[Path]) -> tuple[object, ...]:
    """The inode, size and time of change of each of `files`; None for one that is missing."""
    return tuple(_state(file) for file in files)


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
