"""Process 1 of a recording runs in fresh namespaces: when it ends, the kernel ends all that it started.

    caller ── setpriv ── unshare ── record.recorder.inside

Its files are in a file system in memory that ends with it, too. It begins in the machine's network, in which it leaves
the proxy (`record.recorder.programs`).
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
    """Record `spec`; returns whether the site is there. If not, the recorder has printed why.

    Raises EyelevelError where the kernel does not let us make namespaces, or the browser those of its sandbox.
    """
    require_browsing("recording")
    command = [*namespaced("mount", "ipc"), sys.executable, "-m", "record.recorder.inside"]
    environment = {**os.environ, "EYELEVEL_CACHE": str(cache_dir()), "PYTHONPATH": str(PROJECT)}
    # Its input, since the kernel limits arguments to 128 KiB each: URLs to fetch may be many and long.
    return subprocess.run(command, env=environment, input=to_json(spec).encode(), check=False).returncode == 0
