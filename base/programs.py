"""The identity of a program: the version that it prints, and a digest of its files."""

import hashlib
import re
import subprocess
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


@cache
def printed_version(program: Path, option: str) -> str:
    """The first line that `program` prints with `option`; empty if it fails or prints nothing."""
    return output_of([str(program), option]).partition("\n")[0].strip()


@cache
def digest_of_program(program: Path, *, with_files: bool = False) -> str:
    """The SHA-256 of `program`; `with_files`: followed by the files beside it that belong to it, in order of names.

    So it is that of `cat chrome *.so *.pak …`, and of the program alone if there are no such files. Raises
    EyelevelError.
    """
    program = program.resolve()
    digest = hashlib.sha256()
    try:
        beside = sorted(program.parent.iterdir()) if with_files else []
        belonging = [path for path in beside if BELONGING.fullmatch(path.name) and path.is_file() and path != program]
        for path in (program, *belonging):
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
    except OSError as error:
        raise EyelevelError(f"{program} cannot be read: {error.strerror}") from None
    return digest.hexdigest()
