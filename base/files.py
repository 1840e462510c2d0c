"""Writes files so that neither a reader nor a power cut ever finds half a file."""

import ctypes
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from base.bounded import read_json_value
from base.errors import EyelevelError
from base.ownership import give_to_caller

# The system calls of Linux that Python does not offer (renameat(2), syncfs(2)).
_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace `path` by `content` in one step: write a temporary file, fsync, rename, fsync the folder."""
    data = content.encode() if isinstance(content, str) else content
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else can read at any moment."""
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    path.write_bytes(content)


@contextmanager
def replacing_folder(path: Path, known_by: str = "*") -> Iterator[Path]:
    """Yield an empty folder next to `path` that replaces `path` when the block ends without an error.

    If there is a folder at `path`, it must be empty or contain an entry whose name matches `known_by`. Any other folder
    was made for another purpose; it stays, and this raises EyelevelError.

    At every moment there is a complete folder at `path`, the old or the new one, even if this process or the machine
    fails. The next caller removes what a killed process left of its new folder. Raises OSError.
    """
    if path.is_dir() and any(path.iterdir()) and not any(path.glob(known_by)):
        raise EyelevelError(f"{path} exists and has no {known_by}, so it is not replaced; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    new = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        with locked(new):
            new.chmod(0o777 & ~_umask())
            yield new
            sync_file_system(new)
            if path.is_dir():
                _exchange(new, path)
            else:
                new.replace(path)
        sync(path.parent)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # the incomplete new folder, or the old one
        _lock_file(new).unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that the user named, in one step, and make the caller its owner.

    If `path` is a pipe, a device or this process's output, the content is written into it. If it is a link, the link
    stays, and its target is replaced. Raises EyelevelError.
    """
    try:
        if stream := _stream(path):
            with os.fdopen(os.dup(stream) if isinstance(stream, int) else os.open(stream, os.O_WRONLY), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
        else:
            write_atomically(path.resolve(), content)
            give_to_caller(path.resolve())
    except OSError as error:
        raise EyelevelError(f"{path} cannot be written: {error.strerror}") from None


def _stream(path: Path) -> int | Path | None:
    """The descriptor of this process, or the pipe or device, that `path` names; None if `path` is a regular file or
    does not exist.

    Raises OSError, also if `path` is something else, such as a folder.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    for descriptor in (1, 2):
        with suppress(OSError):
            # Opening it again would overwrite its beginning.
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode):
        return path
    if not stat.S_ISREG(status.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EOPNOTSUPP
        raise OSError(number, os.strerror(number))
    return None


def require_file(path: Path, remedy: str, *, appended: bool = False) -> None:
    """Raise EyelevelError, with a `remedy`, when `write_file` cannot write `path`.

    `appended`: an existing file need not be replaceable, but it must be possible to append to it.
    """
    try:
        stream = _stream(path)
        if isinstance(stream, Path) and not os.access(stream, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if stream is None and appended and path.exists():
            path.open("ab").close()
        elif stream is None:
            target = path.resolve()
            descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
            os.close(descriptor)
            Path(temporary).unlink()
    except OSError as error:
        raise EyelevelError(f"{path} cannot be written ({error.strerror}); {remedy}") from None


def require_writable(folder: Path, remedy: str) -> None:
    """Raise EyelevelError, with a `remedy`, when nothing can be written in `folder`, which need not exist yet."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    try:
        with suppress(FileNotFoundError):
            folder.lstat()
        # Try it, since permissions are not enough: root has all of them, even on a read-only file system.
        Path(tempfile.mkdtemp(dir=there, prefix=f".{folder.name}-")).rmdir()
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written ({error.strerror or error}); {remedy}") from None


def require_replaceable(folder: Path, remedy: str) -> None:
    """Raise EyelevelError, with a `remedy`, when `replacing_folder` cannot create `folder`."""
    require_writable(folder, remedy)
    if folder.exists():
        if folder.is_mount() or folder.samefile("."):
            raise EyelevelError(f"{folder} is a mount point or the working folder and cannot be replaced; {remedy}")
        require_writable(folder.absolute().parent, remedy)


class Locked(EyelevelError):
    """Another process holds the lock of a folder."""


@contextmanager
def locked(folder: Path, message: str = "another process has it", *, wait: bool = False) -> Iterator[None]:
    """Lock `folder` against other processes until the block or this process ends.

    If another process holds the lock, either `wait` for it, or raise Locked with `message`.
    """
    descriptor = _lock(folder, wait=wait)
    if descriptor is None:
        raise Locked(message)
    try:
        yield
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, wait: bool = False) -> bool:
    """Lock the open file `descriptor` against other processes (flock(2)) until it is closed or this process ends.

    If another process holds the lock, either `wait` for it or return false. Raises OSError if the file system has no
    locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def lock_holder(path: Path) -> int | None:
    """The process that has locked `path` by flock(2), as `locked` does, if this process can see it.

    This does not touch the lock.
    """
    files = {_in_locks(entry) for entry in (path, _lock_file(path)) if entry.exists()}
    # A line is "1: FLOCK  ADVISORY  WRITE 4711 00:1a:2902 0 EOF". An arrow marks a process that waits for a lock
    # (proc(5)).
    for line in Path("/proc/locks").read_text().splitlines():
        _, kind, *_, pid, file, _, _ = line.split()
        if kind == "FLOCK" and file in files:
            return int(pid)
    return None


def _in_locks(path: Path) -> str:
    """The device and number by which /proc/locks names the file at `path`.

    The device is that of the mount. stat(2) returns another one for a file system that consists of several parts
    (btrfs, overlay).
    """
    descriptor = os.open(path, os.O_PATH)
    try:
        details = os.fstat(descriptor)
        information = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    finally:
        os.close(descriptor)
    mount = next(line.split()[1] for line in information.splitlines() if line.startswith("mnt_id:"))
    mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    # In a chroot(2), the mount may not be visible.
    by_stat = f"{os.major(details.st_dev)}:{os.minor(details.st_dev)}"
    major, minor = next((fields[2] for fields in mounts if fields[0] == mount), by_stat).split(":")
    return f"{int(major):02x}:{int(minor):02x}:{details.st_ino}"


def _lock(folder: Path, *, wait: bool = False) -> int | None:
    """A descriptor that keeps `folder` locked until it is closed; None when another process holds the lock and this
    shall not `wait`. Raises OSError."""
    # NFS locks only files that are open for writing (flock(2)), which a folder cannot be. There, a file next to it is
    # locked.
    for path, flags in ((folder, os.O_RDONLY | os.O_DIRECTORY), (_lock_file(folder), os.O_RDWR | os.O_CREAT)):
        descriptor = os.open(path, flags, 0o666)
        try:
            if lock(descriptor, wait=wait):
                return descriptor
        except OSError as error:
            os.close(descriptor)
            if error.errno != errno.EBADF:
                raise
        else:
            os.close(descriptor)
            return None
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(folder))


def _lock_file(folder: Path) -> Path:
    """The file that is locked in place of `folder` on file systems that cannot lock folders."""
    return folder.with_name(f".{folder.name}.lock")


def _remove_abandoned(path: Path) -> None:
    """Remove folders that were to replace `path` if the processes that wrote them have ended."""
    name = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}")
    for folder in [entry for entry in path.parent.iterdir() if name.fullmatch(entry.name) and entry.is_dir()]:
        with suppress(OSError, Locked), locked(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _lock_file(folder).unlink(missing_ok=True)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders, in one step if the file system supports it."""
    outcome = _LIBC.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if outcome == 0:
        return
    aside = Path(tempfile.mkdtemp(dir=other.parent, prefix=f".{other.name}."))
    try:
        other.replace(aside)
    except OSError:  # it is a mount point, say
        aside.rmdir()
        raise
    one.replace(other)
    aside.replace(one)


def sync_file_system(folder: Path) -> None:
    """Make everything written to the file system of `folder` survive a power cut: one call for many files.

    Raises OSError if writing to the disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(descriptor):
            raise OSError(number := ctypes.get_errno(), os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    """The process's file creation mask. (umask(2) can only read it by setting it, for all threads.)"""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1], 8) for line in status.splitlines() if line.startswith("Umask:"))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file at `path`, which a stranger may have made (`base.bounded`). Raises EyelevelError when
    it is missing or broken."""
    try:
        document = read_json_value(path)
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict):
        raise EyelevelError(f"{path} is broken: it holds no JSON object")
    return document


def write_json(path: Path, document: Any) -> None:
    """Replace the file at `path` by `document` as JSON, in one step."""
    write_atomically(path, json.dumps(document, indent=1) + "\n")
