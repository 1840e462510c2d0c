"""Holds every session of tests to one promise: whatever happened in it, nothing of it is left on the machine.

Other things run on the machine too. So every process of a session inherits a mark in its environment and a
temporary folder of the session's own, and only what bears these is judged.
"""

import os
import select
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

MARK = "EYELEVEL_TEST_SESSION"

# A process that has been told to end may need a moment to.
END_TIMEOUT_S = 5.0

# An example that failed belongs into a test of its own, not into a database; and what Hypothesis notes down, not into
# the checkout, where it would be root's.
settings.register_profile("eyelevel", database=None, deadline=None)
settings.load_profile("eyelevel")
HYPOTHESIS_HOME = tempfile.TemporaryDirectory(prefix="eyelevel-hypothesis-")
set_hypothesis_home_dir(HYPOTHESIS_HOME.name)


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the session when processes, mounts or temporary files of it outlive its last test."""
    mark = uuid.uuid4().hex
    tmp_path_factory.getbasetemp()  # pytest's own folder is made, and cleared away, by itself
    folder = Path(tempfile.mkdtemp(prefix="eyelevel-tests-"))
    mounts = mount_points()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        yield
    # A namespace lives as long as a process, a mount or a descriptor of ours holds it.
    left = [f"process {process}" for process in processes_marked(f"{MARK}={mark}")]
    left += [f"mount on {path}" for path in sorted(mount_points() - mounts)]
    left += [f"temporary file {path}" for path in folder.iterdir()]
    shutil.rmtree(folder)
    if left:
        pytest.fail("left behind by the tests:\n  " + "\n  ".join(left), pytrace=False)


def processes_marked(mark: str) -> list[str]:
    """The processes with `mark` in their environment that do not end within a few seconds, as a person knows them."""
    deadline = time.monotonic() + END_TIMEOUT_S
    return [told for pid in _pids_marked(mark) if (told := _told(pid)) and not _ends(pid, deadline)]


def _pids_marked(mark: str) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:  # it has ended meanwhile, or is not ours to look at
            continue


def _told(pid: int) -> str:
    try:
        return f"{pid} ({Path(f'/proc/{pid}/cmdline').read_bytes().replace(bytes(1), b' ').decode(errors='replace')})"
    except OSError:
        return ""


def _ends(pid: int, deadline: float) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0])
    finally:
        os.close(descriptor)


def mount_points() -> set[str]:
    """Where something is mounted in this mount namespace."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
