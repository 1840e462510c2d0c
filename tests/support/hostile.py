"""Runs commands of the program in a separate process, and measures each, since hostile files must not cost much.

As a program, this module reads a list of command lines as JSON, and writes a line of JSON for each.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from click.testing import CliRunner

from base.errors import EyelevelError
from base.places import PROJECT


@dataclass(frozen=True)
class Ending:
    """How a command ended: the name of its exception ("" if none), the exception's text, its whole output, and its peak
    resident memory."""

    exception: str
    error: str
    output: str
    peak_mb: float

    @property
    def is_refused(self) -> bool:
        """Whether the command ended with an error of one line, without characters that control the terminal."""
        return self.exception == EyelevelError.__name__ and self.error.isprintable()


def endings(commands: Iterable[Sequence[str | Path]], folder: Path) -> list[Ending]:
    """Run `commands` of the program one by one in one process, whose results are in `folder`."""
    completed = subprocess.run(
        [sys.executable, "-m", "support.hostile"],
        input=json.dumps([[str(part) for part in command] for command in commands]),
        env={**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Ending(**json.loads(line)) for line in completed.stdout.splitlines()]


def main() -> None:
    """Run the commands on standard input."""
    from eyelevel.program import program

    for command in json.load(sys.stdin):
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak (proc(5))
        done = CliRunner().invoke(program, command)
        status = Path("/proc/self/status").read_text().splitlines()
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        is_error = done.exception and not isinstance(done.exception, SystemExit)
        name, text = (type(done.exception).__name__, str(done.exception)) if is_error else ("", "")
        print(json.dumps(asdict(Ending(name, text, done.output, peak_kb / 1024))), flush=True)


if __name__ == "__main__":
    main()
