"""Process 1 of a recording runs in fresh namespaces: when it ends, the kernel ends all that it started.

    caller ── setpriv ── unshare ── record.recorder.inside

Its files are in a file system in memory that ends with it, too. The network is the machine's.
"""

import os
import subprocess
import sys
from pathlib import Path

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT, cache_dir, tool
from base.structure import to_json
from record.recorder.spec import RecordSpec


def run(spec: RecordSpec) -> bool:
    """Record `spec`; returns whether the site is there. If not, the recorder has printed why.

    Raises EyelevelError where the kernel does not let us make namespaces.
    """
    kinds = [] if os.geteuid() == 0 else ["user", "map-current-user", "keep-caps"]
    trial: list[str | Path] = [tool("unshare"), *(f"--{kind}" for kind in kinds), "--pid", "true"]
    if subprocess.run(trial, capture_output=True, check=False).returncode:
        raise EyelevelError("recording needs namespaces, and this system does not let you make any; run it as root")
    command = [*namespaced(*kinds, "mount", "ipc"), sys.executable, "-m", "record.recorder.inside", to_json(spec)]
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, env=environment, check=False).returncode == 0
