"""Jails for programs that read data made by strangers: they run as an ordinary user, with few files and no rights.

A jail contains the files that it is given, the files that the system's programs need (/usr, fonts, a few of /etc), and
fresh /proc, /dev and /dev/shm. Nothing else exists in it, and only files given as writable can be written. It sees no
processes but its own. It has no capabilities and can get none, but can make user namespaces, which Chromium's own
sandbox needs. It shares the network and the System V shared memory (in which X clients pass pictures to their server)
of its caller, which is a replay or a recording.
"""

import os
import pwd
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from base.errors import EyelevelError

# The jailer is imported instead of run as a program, since Python would compile a program each time. No other folder of
# the project is in its module path.
START_JAILER = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import jailer; jailer.main(sys.argv[1:])"

# The user that owns no files.
NOBODY = 65534


@dataclass(frozen=True)
class Jail:
    """The files and folders that a program can use in its jail, each with all its contents, under the same names.

    Trust nothing below `writable` afterwards: a link there may lead anywhere (`base.jail.file_in`). `x_sockets` is
    mounted in the jail as the folder of X servers' sockets; the program can write it if it is also in `writable`.
    `variables` names environment variables that the program gets in addition to the usual ones (`base.jailer`). All
    others are withheld, since they may contain a user's passwords and keys.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    x_sockets: Path | None = None
    variables: tuple[str, ...] = ()


def jailed(jail: Jail, command: Sequence[str | Path]) -> list[str | Path]:
    """The command line that runs `command` in `jail`; the program itself need not be among the jail's files.

    The caller must have CAP_SYS_ADMIN in its namespaces, as in those of `base.namespaces.namespaced`. The command runs
    as the caller's user; if that is root, as the user who called sudo, or as nobody. That user becomes the owner of the
    `writable` folders. Descriptors that the caller passes on are open in the jail. SIGTERM reaches the command, and its
    exit status is returned. Processes that it leaves behind end with it, and the jail ends with the thread that started
    it.

    Raises EyelevelError when one of the jail's files does not exist.
    """
    program = Path(command[0])
    user = jail_user()
    options: list[str | Path] = [] if user is None else ["--user", f"{user[0]}:{user[1]}"]
    for kind, paths in (
        ("--readable", (*jail.readable, *((program,) if program.is_absolute() else ()))),
        ("--writable", jail.writable),
    ):
        for path in _with_targets(paths):
            if not path.exists():
                raise EyelevelError(f"{program.name} needs {path}, which is missing; run 'make setup'")
            if not path.is_relative_to("/usr"):
                options += [kind, path]
    options += ["--x-sockets", jail.x_sockets] if jail.x_sockets else []
    options += [word for name in jail.variables for word in ("--variable", name)]
    for path in jail.writable:
        hand_over(path)
    return [sys.executable, "-I", "-S", "-c", START_JAILER, *options, "--", *command]


def jail_user() -> tuple[int, int] | None:
    """The user and the group of jailed programs; None if they are the caller's."""
    if os.geteuid() != 0:
        return None
    try:
        user, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return NOBODY, NOBODY
    return (user, group) if user else (NOBODY, NOBODY)


def shared_folders() -> set[Path]:
    """Folders that have more in them than one program's files, so that no jail may get a whole one: those of temporary
    files, and the home of the user (of the one who called sudo, too) with all folders above it."""
    homes = [Path.home()]
    # Under sudo, HOME may be root's; a user need not be in the system's list.
    with suppress(KeyError, ValueError):
        homes.append(Path(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir))
    homes += [home.resolve() for home in homes]
    return {Path("/tmp"), Path("/var/tmp"), *homes, *(parent for home in homes for parent in home.parents)}


def hand_over(path: Path) -> None:
    """Make the user of jailed programs the owner of `path` and all that it contains.

    Such programs may already be running and writing there: links that they put in place of a folder are not followed,
    and files that they remove are ignored.
    """
    if user := jail_user():
        os.chown(path, *user, follow_symlinks=False)
        for _, folders, files, descriptor in os.fwalk(path):
            for name in (*folders, *files):
                with suppress(FileNotFoundError):
                    os.chown(name, *user, dir_fd=descriptor, follow_symlinks=False)


def end_at_once(jailer: "subprocess.Popen[bytes]") -> None:
    """End the jail that the process `jailer` runs; when this returns, all its processes have ended."""
    jailer.send_signal(signal.SIGQUIT)
    jailer.wait()


def file_in(folder: Path, name: str) -> Path | None:
    """The file `name` in a `folder` that a jailed program could write; all programs there must have ended.

    None unless it exists and is a regular file: a link would lead its reader out of the folder.
    """
    path = folder / name
    links = [part for part in (path, *path.parents) if part.is_relative_to(folder) and part.is_symlink()]
    return path if not links and path.is_file() else None


def opened_in(folder: Path, name: str) -> BinaryIO | None:
    """The file `name` in `folder`, open for reading; None as in `file_in`.

    Programs may still be writing in `folder`: a link is not followed, whenever they put it there. The last part of
    `folder` must not be a link either.
    """
    *folders, file = [folder, *map(Path, Path(name).parts)]
    with ExitStack() as ends:
        place: int | None = None
        try:
            for part in folders:
                place = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
                ends.callback(os.close, place)
            # Do not wait for a pipe.
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        except OSError:
            return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    return None


def _with_targets(paths: Sequence[Path]) -> list[Path]:
    """The absolute `paths`, and for each that is a link or passes through links, every path on the way to its
    target."""
    steps: dict[Path, None] = {}
    for path in paths:
        step = Path(os.path.abspath(path))  # noqa: PTH100 (it keeps links)
        while step not in steps:
            steps[step] = None
            step = Path(os.path.abspath(step.parent / step.readlink())) if step.is_symlink() else step.resolve()  # noqa: PTH100
    return list(steps)
