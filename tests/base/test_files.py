"""Files and folders are written whole, locked on every file system, and reported as safe only if the disk accepted
them."""

import ctypes
import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from base import files
from base.errors import EyelevelError
from base.files import Locked, lock_holder, locked, replacing_folder, write_atomically
from base.namespaces import namespaced
from base.places import PROJECT
from record.demo import generate
from record.site import write_site

HOLDER = """
import sys
from pathlib import Path
from base.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_locked_folder_is_refused_to_others_and_its_holder_is_known(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "locked\n"
        assert lock_holder(tmp_path) == other.pid
        with pytest.raises(Locked, match="occupied"), locked(tmp_path, "occupied"):
            pass
        other.kill()
    assert lock_holder(tmp_path) is None
    with locked(tmp_path):
        pass


# Two file systems that use the same file numbers; a file of the first is locked.
ALIKE = """
import os, sys
from pathlib import Path
from base.files import lock_holder, locked
one, other = (Path(name) / "folder" for name in sys.argv[1:])
for folder in (one, other):
    os.system(f"mount -t tmpfs tmpfs {folder.parent}")
    folder.mkdir()
assert one.stat().st_ino == other.stat().st_ino
with locked(one):
    print(lock_holder(one) == os.getpid(), lock_holder(other))
"""


@pytest.mark.needs_namespaces
def test_a_lock_is_not_taken_for_that_of_a_file_of_the_same_number_elsewhere(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    command = [*namespaced("mount"), sys.executable, "-c", ALIKE, *folders]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "True None\n", done.stderr


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks as on NFS: only files that are open for writing can be locked (flock(2), nfs4_proc_lock of the kernel)."""

    def flock(descriptor: int, operation: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        original(descriptor, operation)

    original = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("nfs")
def test_folders_on_nfs_are_locked_and_replaced_as_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    with locked(folder):
        assert lock_holder(folder) == os.getpid()
        with pytest.raises(Locked), locked(folder):
            pass
    assert lock_holder(folder) is None
    for text in ("old", "new"):
        with replacing_folder(tmp_path / "site") as new:
            (new / "file").write_text(text)
            (abandoned := tmp_path / ".site.abcd1234").mkdir()
    with replacing_folder(tmp_path / "site") as new:
        assert new.exists() and not abandoned.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"c", ".c.lock", "site"}


def test_a_site_that_the_disk_did_not_take_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_site(generate("demo-light"), tmp_path / "site")
    before = {path: path.stat().st_ino for path in (tmp_path / "site").rglob("*")}

    class Disk:
        """The C library on a machine whose disk has lost a write."""

        def syncfs(self, _: int) -> int:
            ctypes.set_errno(errno.EIO)
            return -1

    monkeypatch.setattr(files, "_LIBC", Disk())
    with pytest.raises(EyelevelError, match="site cannot be written: Input/output error"):
        write_site(generate("demo-light"), tmp_path / "site")
    assert {path: path.stat().st_ino for path in (tmp_path / "site").rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_folder_that_cannot_be_renamed_stays_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is with a mount point, where the file system cannot exchange names in one step either."""
    (tmp_path / "site").mkdir()
    monkeypatch.setattr(files, "_LIBC", SimpleNamespace(renameat2=lambda *_: -1, syncfs=lambda _: 0))

    def fail(path: Path, _: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="busy"), replacing_folder(tmp_path / "site"):
        pass
    assert list(tmp_path.iterdir()) == [tmp_path / "site"]


def test_a_file_is_replaced_in_one_step_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reader = tmp_path / "file", tmp_path / "reader"
    path.write_text("old")
    # A second name of the file that a reader has opened.
    reader.hardlink_to(path)
    write_atomically(path, "new")
    assert (path.read_text(), reader.read_text()) == ("new", "old")

    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "newer")
    assert path.read_text() == "new" and set(tmp_path.iterdir()) == {path, reader}


def test_the_umask_holds_while_other_threads_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o077)
    try:
        # Setting the umask, even only to read it, affects all threads.
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask of all threads was set"))
        names = [tmp_path / str(number) for number in range(8)]
        threads = [threading.Thread(target=write_atomically, args=(name, "text")) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {stat.S_IMODE(name.stat().st_mode) for name in names} == {0o600}
    finally:
        monkeypatch.undo()
        os.umask(before)
