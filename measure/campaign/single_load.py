"""One load that counts, outside of any campaign."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import EyelevelError
from dataset.run_files import REPLAY_LOG
from dataset.table import Run
from measure.campaign.block import measure_one
from measure.campaign.method import Method
from measure.run.evidence import last_line
from measure.run.gates import LOAD_FAILED
from measure.run.setting import Setting

# How often a load is tried again that fails by itself.
REPEATS = 2


@contextmanager
def single_load(setting: Setting, method: Method, number: int = 1) -> Iterator[Path]:
    """The folder with the evidence of a load of `setting` that counts; `number` counts those of the setting.

    Raises EyelevelError when none counts.
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
