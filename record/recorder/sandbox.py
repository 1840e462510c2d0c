"""Process 1 of a recording runs in namespaces of its own: when it ends, the kernel ends all that it started.

    caller ── setpriv ── unshare ── record.recorder.inside

Its files lie in a file system in memory that ends with it, too. The network is the machine's.
"""

import os
import subprocess
import sys
from pathlib import Path

from eyelevel.places import PROJECT, cache_dir, tool
from record.recorder.spec import RecordSpec


def run(spec: RecordSpec) -> bool:
    """Record `spec`, which says itself what went wrong; returns whether the site is there."""
    # What may make namespaces is root, or a user in a user namespace.
    as_user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    command: list[str | Path] = [tool("setpriv"), "--pdeathsig", "KILL", tool("unshare"), *as_user]
    command += ["--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    command += [sys.executable, "-m", "record.recorder.inside", spec.dumps()]
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, env=environment, check=False).returncode == 0
