"""A copy of the testbed to which a test adds files, as maintainers would."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from base.places import PROJECT, cache_dir

FOLDERS = ["analysis", "base", "browsers", "dataset", "eyelevel", "films", "measure", "record", "replay", "servers"]
FOLDERS += ["setup", "shells", "studies", "tuning"]

# A limit for processes that hang; a busy machine takes minutes to compile the emulator.
LIMIT_S = 1200

# Copies the libraries that a checkout's set-up built for its emulator (programs have names without a dot).
LIBRARIES = """
. setup/common.sh
copy=$(built_folder)/release
PROJECT=$1 EYELEVEL_CACHE=$2
built=$(built_folder)/release
mkdir -p "$copy/deps"
cp -a "$built"/{.fingerprint,build} "$copy"
cp -a "$built"/deps/*.* "$copy/deps"
"""
# Runs what its first argument (JSON) lists, one after the other, in one process: its start takes more of the processor
# than most of the commands. Figures take most of a report's time: it draws those that its second argument names, and
# writes all others as empty files. Prints how each command ended (JSON).
EACH = """
import json, pickle, sys
from concurrent.futures import Executor, Future
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from eyelevel.program import main

commands, figures = map(json.loads, sys.argv[1:])

class Here(Executor):
    def submit(self, job, /, *arguments, **named):
        # As between processes.
        job, arguments, named = pickle.loads(pickle.dumps((job, arguments, named)))
        (done := Future()).set_result(pickle.loads(pickle.dumps(job(*arguments, **named))))
        return done

def without_figures():
    from analysis.report import section, write as writing
    draw = section.ReportFigure.write

    def write(figure, folder):
        if figure.name in figures:
            return draw(figure, folder)
        (folder / f"{figure.name}.png").touch()

    section.ReportFigure.write = write
    writing.workers = lambda: nullcontext(Here())  # processes would each fill their caches

def ended(command):
    status = 0
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        try:
            if isinstance(command, str):
                exec(command, {})
            else:
                if command[0] == "report":
                    without_figures()
                sys.argv = ["eyelevel", *command]
                main()
        except SystemExit as end:
            status = end.code
    return status, output.getvalue(), errors.getvalue()

print(json.dumps([ended(command) for command in commands]))
"""
UNOPTIMISED = "profile.release.package.eyelevel-shells.opt-level=0"


class Ending(NamedTuple):
    """How a command ended."""

    status: int
    output: str
    errors: str


class Checkout:
    """A copy of the testbed in `folder`, without documents and tests. Programs can be added to those installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "testbed"
        self.results = folder / "results"
        self._tuning = folder / "tuning"
        for name in FOLDERS:
            # Copy compiled modules, too; otherwise each process would compile them again.
            shutil.copytree(PROJECT / name, self.folder / name)
        self._cache = folder / "cache"
        (self._cache / "bin").mkdir(parents=True)
        for place in (cache_dir(), cache_dir() / "bin"):
            for path in place.iterdir():
                link = self._cache / path.relative_to(cache_dir())
                if not link.exists():
                    link.symlink_to(path)

    def install(self, program: str, text: str) -> None:
        """Install a program, as apt would for a line of setup/packages.txt."""
        path = self._cache / "bin" / program
        path.write_text(text)
        path.chmod(0o755)

    def build_emulator(self) -> None:
        """Build the changed emulator, as set-up would, but without optimisation."""
        # Cargo's folder belongs to the user.
        (self._cache / "cargo-target").unlink(missing_ok=True)
        # If nothing was built, nothing is copied, and cargo builds the libraries, too.
        self.run("bash", "-c", LIBRARIES, "bash", PROJECT, cache_dir())
        ended = self.run("setup/cargo", "build", "--release", "--locked", "--bin", "mm-net", "--config", UNOPTIMISED)
        assert ended.returncode == 0, ended.stderr
        (program,) = (self._cache / "cargo-target").glob("*/release/mm-net")
        (self._cache / "bin" / "mm-net").unlink()
        (self._cache / "bin" / "mm-net").symlink_to(program)

    def tune(self, kind: str, text: str) -> None:
        """Add networks or protocols."""
        self._tuning.mkdir(exist_ok=True)
        (self._tuning / f"{kind}.toml").write_text(text)

    def enter(self, file: str, place: str, entry: str) -> None:
        """Add `entry` to a list or a class in `file`, after the text `place`."""
        path = self.folder / file
        text = path.read_text()
        assert text.count(place) == 1
        path.write_text(text.replace(place, place + entry))

    def list_package(self, package: str) -> list[str]:
        """Add a line of packages; returns the packages that set-up would install now, with the versions that it
        expects."""
        with (self.folder / "setup" / "packages.txt").open("r+") as table:
            lines = table.read().replace("\nrust\n", f"\n{package} 1.* 1.* 1.* a toy\n\nrust\n", 1)
            table.seek(0)
            table.write(lines)
        step = ". setup/common.sh; . setup/steps/1-packages.sh; missing"
        return self.run("bash", "-c", step).stdout.splitlines()

    def run(self, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "EYELEVEL_CACHE": str(self._cache)}
        environment["COLUMNS"] = "250"
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**environment, "EYELEVEL_TUNING": str(self._tuning) if self._tuning.exists() else ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )

    def eyelevel(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return self.run(sys.executable, "-m", "eyelevel", *arguments)

    def each(self, *commands: Sequence[object] | str, figures: Sequence[str] = ()) -> list[Ending]:
        """Run the program with each of `commands`, its arguments, in one process; a text is Python. Reports have only
        these `figures`; all others are empty files."""
        lines = [command if isinstance(command, str) else [*map(str, command)] for command in commands]
        done = self.run(sys.executable, "-c", EACH, json.dumps(lines), json.dumps(figures))
        assert done.returncode == 0, done.stderr
        return [Ending(*ending) for ending in json.loads(done.stdout.splitlines()[-1])]
