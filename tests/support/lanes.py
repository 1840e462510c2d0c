"""Runs without a browser, for lanes, which are separate processes and do not see a test's replacements.

Each such process imports this module, so it imports little.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from factories import ROW

from dataset.run_files import ATTEMPT, PROCESSOR
from dataset.table import Row, Run
from measure.campaign import slot
from measure.campaign.method import Method
from measure.host.canary import Canary
from measure.run.setting import Circumstances, Setting

LOOK = "import os; print(sorted(os.sched_getaffinity(0)))"


def validate_cores(folder: Path, *_: object) -> tuple[str, Callable[[Path], None]]:
    """Stands in for a validation (`measure.campaign.remote`): its fault names the processors on which it runs."""
    return str(sorted(os.sched_getaffinity(0))), Path.touch


def known_canary(browser: str = "") -> Canary:
    """Stands in for a canary (`measure.host.canary`)."""
    return Canary(50.0, 800.0)


class NotedMethod(Method):
    """Each run only records where it was made.

    A process that receives the method from a test has no canaries: each would take as much of the processor as a load.
    """

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if "pytest" not in sys.modules:
            vars(slot)["time_canary"] = known_canary

    def prepare(self, *_: object, **__: object) -> None:
        """Do nothing: there is nothing to prepare."""

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        """Make the run."""
        notes = {"block": circumstances.block, "machine": circumstances.machine, "lane": circumstances.lane}
        (folder / ATTEMPT).write_text(json.dumps(notes))

    def analyse(self, folder: Path) -> None:
        """Do nothing: there is no film."""

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        """The row of a run, whatever its result."""
        notes = json.loads((folder / ATTEMPT).read_text())
        changes: dict[str, Any] = {**vars(run), **notes}
        changes["run"] = changes.pop("number")
        return replace(ROW, **changes, attempt=attempt, folder=str(folder.relative_to(campaign)))


@dataclass(frozen=True)
class AnalysedMethod(NotedMethod):
    """The analysis of a run records its process and its processors, or raises `fault`.

    It waits at the pipe `meeting` for another run.
    """

    fault: Exception | None = None
    meeting: Path | None = None

    def analyse(self, folder: Path) -> None:
        """Analyse the run in `folder`."""
        if self.fault:
            raise self.fault
        if self.meeting:
            os.close(os.open(self.meeting, os.O_RDONLY))
        where = [os.getpid(), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0)]
        (folder / "analysis.json").write_text(json.dumps(where))


@dataclass(frozen=True)
class CoresMethod(NotedMethod):
    """Each run records the processors that its child processes may use.

    `fault` names a protocol whose runs end their lane, and `endless` one whose runs never end. Runs of an odd block
    wait at the pipe `meeting` for one of an even block.
    """

    fault: str = ""
    endless: str = ""
    meeting: Path | None = None

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        """Make the run."""
        if setting.protocol.name == self.endless:
            signal.pause()
        if setting.protocol.name == self.fault:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.meeting:
            os.close(os.open(self.meeting, os.O_WRONLY if circumstances.block % 2 else os.O_RDONLY))
        child = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
        (folder / PROCESSOR).write_text(json.dumps({"affinity": json.loads(child.stdout)}))
        super().make(setting, circumstances, folder, attempt)
