"""A single valid load, outside of any campaign."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import EyelevelError
from dataset.run_files import REPLAY_LOG
from dataset.table import Row, Run
from measure.campaign.method import Method
from measure.campaign.slot import Slot
from measure.campaign.store import FolderStore
from measure.run.evidence import last_line
from measure.run.gates import LOAD_FAILED
from measure.run.setting import Circumstances, Setting

# How often a failed load is repeated.
REPEATS = 2


@contextmanager
def single_load(setting: Setting, method: Method, number: int = 1) -> Iterator[Path]:
    """The folder with the evidence of a valid load of `setting`; `number` is the run's number.

    Raises EyelevelError when no load is valid.
    """
    site, protocol = setting.site.name, setting.protocol.name
    run = Run(site, setting.network.name, protocol, number)
    with tempfile.TemporaryDirectory(prefix="eyelevel-load-") as temporary:
        row = measure_one(run, setting, method, Path(temporary), REPEATS)
        folder = Path(temporary) / row.folder
        if row.reason:
            text = last_line(folder / REPLAY_LOG) if row.gate == LOAD_FAILED.name else ""
            fault = f"{site} could not be loaded over {protocol} in {row.attempt} tries: {row.reason}"
            raise EyelevelError(f"{fault}: {text}" if text else fault)
        yield folder


def measure_one(run: Run, setting: Setting, method: Method, folder: Path, repeats: int) -> Row:
    """Load `setting` until a load is valid, outside of any campaign; returns the row of the last attempt.

    The evidence of each attempt is in `folder`, at `row.folder`. If none is valid after `repeats` repeats, the row has
    the reason. Raises EyelevelError when replays fail repeatedly.
    """
    store, slot = FolderStore(folder), Slot()
    while store.is_open(run, repeats):
        attempt = store.attempts(run) + 1
        of_attempt = store.empty_run_folder(run, attempt)
        method.make(setting, Circumstances(1, slot.machine), of_attempt, attempt)
        method.analyse(of_attempt)
        store.keep(row := method.judge(setting, run, attempt, of_attempt, folder))
        slot.count(row)
    return store.rows[-1]
