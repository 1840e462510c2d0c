"""Runs process 1 of a recording in fresh namespaces: when it ends, the kernel ends all that it started.

    caller ── setpriv ── unshare ── record.recorder.inside

Its files are in a file system in memory, which also ends with it. It begins in the machine's network, and leaves only
the proxy there (`record.recorder.programs`).
"""

import os
import subprocess
import sys

from base.namespaces import namespaced
from base.places import PROJECT, cache_dir
from base.privileges import require_browsing
from base.structure import to_json
from record.recorder.spec import RecordSpec


def run(spec: RecordSpec) -> bool:
    """Record `spec`; returns whether the site was made. If not, the recorder has printed why.

    Raises EyelevelError when the kernel does not permit our namespaces, or those of the browser's sandbox.
    """
    require_browsing("recording")
    command = [*namespaced("mount", "ipc"), sys.executable, "-m", "record.recorder.inside"]
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)}
    # `spec` is passed on standard input: the kernel limits arguments to 128 KiB each, and the URLs to fetch may be many
    # and long.
    return subprocess.run(command, env=environment, input=to_json(spec).encode(), check=False).returncode == 0
