"""`jailer OPTIONS -- COMMAND…`: makes a jail, and runs COMMAND in it (`base.jail` builds the command line).

    caller ── jailer ── process 1 of the jail ── COMMAND

    --user UID:GID      the user and group of COMMAND; by default the caller's
    --readable PATH     a path that COMMAND can read; can be repeated
    --writable PATH     a path that COMMAND can read and write; can be repeated
    --x-sockets PATH    the folder to mount as the folder of X servers' sockets; writable if it is a --writable PATH
    --variable NAME     an environment variable for COMMAND in addition to `VARIABLES`; can be repeated

The jailer waits outside, forwards SIGTERM, and returns the exit status of COMMAND. At SIGQUIT it ends everything in the
jail, and then itself. When process 1 ends, so do all processes in the jail. Process 1 ends with COMMAND, and with the
jailer, however that ends; its rights are as limited as COMMAND's. The jail has its own root, entered by pivot_root(2):
in a chroot no user namespace can be made, and Chromium's own sandbox needs one.

Standard library only, and little of that: it starts in some 15 ms. (bubblewrap cannot take its place: it does not
forward signals, and refuses to start if a user other than root has capabilities.)
"""

import ctypes
import errno
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # `signal` makes enumerations of what is in this module, a fifth of the time that the jailer needs to start.
    import _signal as signal

HANDLED_SIGNALS = {signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD}

# The exit status when the jail could not be made; the reason is on standard error.
NOT_MADE = 125
# The exit status of shells when a command does not exist (POSIX, 2.8.2).
COMMAND_NOT_FOUND = 127

# The folder on which the new root is mounted: any that every system has. The mount hides the folder's files, so those
# that the jail needs are opened beforehand.
NEW_ROOT = "/tmp"
# The new root's own files are few and small. Shared memory is larger: the browser keeps a page's pictures and films
# there.
ROOT_OPTIONS = "mode=755,size=16m"
SHARED_MEMORY_OPTIONS = "mode=1777,size=1g"

X_SOCKETS = "/tmp/.X11-unix"
# The environment variables that programs get. Others are withheld: a user may keep passwords and keys in them.
VARIABLES = ("DISPLAY", "HOME", "LANG", "LANGUAGE", "PATH", "SSLKEYLOGFILE", "SSL_CERT_FILE", "TMPDIR", "TZ")
VARIABLES_BEGIN = ("EYELEVEL_", "LC_", "PYTHON", "XDG_")
# Links into /usr, or folders of their own.
TOP_LEVEL = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# The parts of the system that programs need and that contain no secrets. Absent ones are left out.
SYSTEM_FOLDERS = (
    "/usr",
    "/etc/alternatives",
    "/etc/chromium",
    "/etc/fonts",
    "/etc/ssl/certs",
    "/sys/devices/system/cpu",
    "/var/cache/fontconfig",
)
SYSTEM_FILES = (
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/resolv.conf",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
)
DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
NOBODY = 65534
MOST_DESCRIPTORS = 1 << 30

# These files list the numbers and names of users' keys.
KEY_LISTS = ("/proc/keys", "/proc/key-users")

# linux/sched.h, linux/mount.h, linux/prctl.h, linux/capability.h, linux/keyctl.h; numbers of system calls on x86-64.
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4
SYS_PIVOT_ROOT, SYS_KEYCTL, SYS_SECCOMP, SYS_MOUNT_SETATTR = 155, 250, 317, 442
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 23, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
CAPABILITY_VERSION_3 = 0x20080522
KEYCTL_JOIN_SESSION_KEYRING = 1

# The instructions of a filter of system calls (linux/bpf_common.h, linux/seccomp.h, linux/audit.h).
LOAD, JUMP_IF_EQUAL, JUMP_IF_GREATER, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x25, 0x35, 0x06
AT_NUMBER, AT_ARCHITECTURE = 0, 4
X86_64 = 0xC000003E
X32_NUMBERS = 0x40000000
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW = 1, 4
SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO = 0x7FFF0000, 0x00050000
# Make add_key, request_key and keyctl (248 to 250) fail as in a kernel without keys, and refuse system calls by the
# numbers of other architectures. Each line: the operation, its operand, and how many lines to skip if the condition is
# true, and if it is false.
KEY_CALLS = (
    (LOAD, AT_ARCHITECTURE, 0, 0),
    (JUMP_IF_EQUAL, X86_64, 0, 4),
    (LOAD, AT_NUMBER, 0, 0),
    (JUMP_IF_AT_LEAST, X32_NUMBERS, 2, 0),
    (JUMP_IF_GREATER, 250, 2, 0),
    (JUMP_IF_AT_LEAST, 248, 0, 1),
    (RETURN, SECCOMP_RET_ERRNO | errno.ENOSYS, 0, 0),
    (RETURN, SECCOMP_RET_ALLOW, 0, 0),
)

LIBC = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """struct mount_attr (mount_setattr(2))."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class FilterLine(ctypes.Structure):
    """struct sock_filter (linux/filter.h)."""

    _fields_ = [
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    ]


class Filter(ctypes.Structure):
    """struct sock_fprog (linux/filter.h)."""

    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(FilterLine))]


class NotMade(Exception):
    """The jail cannot be made; the message says why."""


def main(arguments: list[str]) -> None:
    """Run the command of the command line in a jail, and end with its status."""
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    given: dict[str, list[str]] = {}
    for name, value in zip(options[::2], options[1::2], strict=True):
        given.setdefault(name, []).append(value)
    user = next((tuple(map(int, value.split(":"))) for value in given.get("--user", ())), None)
    writable = given.get("--writable", [])
    binds = {path: path for path in (*given.get("--readable", ()), *writable)}
    if "--x-sockets" in given:
        (binds[X_SOCKETS],) = given["--x-sockets"]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(VARIABLES_BEGIN) or name in (*VARIABLES, *given.get("--variable", ()))
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*HANDLED_SIGNALS, signal.SIGINT})
    outcome, outcome_end = os.pipe()
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        check(LIBC.unshare(CLONE_NEWPID), "a namespace of processes")
        if (first := os.fork()) == 0:
            os.close(outcome)
            check(LIBC.unshare(CLONE_NEWNS), "a namespace of mounts")  # the jailer stays in its own
            make_root(binds, writable, user)
            drop_rights(user)
            require_access(binds, writable)
            end_with_jailer(outcome_end)
            os.write(outcome_end, b"%d" % first_process(command, environment, mask, outcome_end))
            os._exit(0)
    except (NotMade, OSError) as error:
        print(f"eyelevel: {os.path.basename(command[0])} cannot be jailed: {error}", file=sys.stderr)
        os._exit(NOT_MADE)
    close_descriptors(outcome)
    status = wait(first)
    end_as(int(os.read(outcome, 16).strip() or status))


def first_process(
    command: list[str], environment: dict[str, str], mask: "set[int | signal.Signals]", outcome_end: int
) -> int:
    """Act as process 1 of the jail: run `command`, and reap orphans; return the command's status as wait(2) does."""
    prctl(PR_SET_DUMPABLE, 0)  # so that nobody reads our own environment
    process = os.fork() or execute(command, environment, mask)
    close_descriptors(outcome_end)
    return wait(process)


def execute(command: list[str], environment: dict[str, str], mask: "set[int | signal.Signals]") -> int:
    """Replace this process by `command`; does not return."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"eyelevel: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(COMMAND_NOT_FOUND)


def wait(process: int) -> int:
    """Wait until `process` has ended, and forward signals to it; return its status as wait(2) does."""
    while True:
        if (number := signal.sigwait(HANDLED_SIGNALS)) != signal.SIGCHLD:
            os.kill(process, signal.SIGTERM if number == signal.SIGTERM else signal.SIGKILL)
        # One SIGCHLD may stand for several children.
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == process:
                return ended[1]


def close_descriptors(kept: int) -> None:
    """Close all descriptors except the standard ones and `kept`: other processes wait for the ends of pipes and
    sockets."""
    os.closerange(3, kept)
    os.closerange(kept + 1, MOST_DESCRIPTORS)


def end_as(status: int) -> None:
    """End as a process with this status (wait(2)) did."""
    if os.WIFSIGNALED(status):
        prctl(PR_SET_DUMPABLE, 0)  # the command has dumped core already
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def make_root(binds: dict[str, str], writable: list[str], user: tuple[int, ...] | None) -> None:
    """Assemble and enter a root that contains only `binds` (by their places in it) and the parts of the system that
    programs need.

    A bind is writable if its place outside is among `writable`.
    """
    folder = os.getcwd()
    umask = os.umask(0o022)
    system = [path for path in (*SYSTEM_FOLDERS, *TOP_LEVEL) if os.path.isdir(path) and not os.path.islink(path)]
    devices = [f"/dev/{name}" for name in DEVICES]
    binds = {path: path for path in system} | binds
    opened = {place: os.open(path, os.O_PATH) for place, path in (*binds.items(), *zip(devices, devices, strict=True))}
    files = {path: content for path in SYSTEM_FILES if (content := content_of(path)) is not None}
    files |= accounts(*(user or (os.getuid(), os.getgid())))
    links = {path: os.readlink(path) for path in TOP_LEVEL if os.path.islink(path)}
    links |= {f"/dev/{name}": target for name, target in DEVICE_LINKS.items()}

    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV, ROOT_OPTIONS)
    for path, content in files.items():
        os.makedirs(os.path.dirname(NEW_ROOT + path), exist_ok=True)
        with open(NEW_ROOT + path, "wb") as file:
            file.write(content)
    os.mkdir(f"{NEW_ROOT}/dev")
    for path, target in links.items():
        os.symlink(target, NEW_ROOT + path)
    for path in ("/proc", "/dev/shm", "/tmp"):
        os.mkdir(NEW_ROOT + path)
    mount("proc", f"{NEW_ROOT}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("tmpfs", f"{NEW_ROOT}/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, SHARED_MEMORY_OPTIONS)
    for path in devices:
        bind(opened[path], path, MOUNT_ATTR_NOSUID)
    for path in filter(os.path.exists, KEY_LISTS):
        bind(opened["/dev/null"], path, MOUNT_ATTR_RDONLY)
    attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
    # Sorted, so that a place within another one comes after it.
    for place, path in sorted(binds.items()):
        bind(opened[place], place, attributes if path in writable else attributes | MOUNT_ATTR_RDONLY)
    enter(NEW_ROOT)
    set_attributes("/", MOUNT_ATTR_RDONLY)
    os.umask(umask)
    if os.path.isdir(folder):
        os.chdir(folder)


def content_of(path: str) -> bytes | None:
    """The content of the file at `path`; None if it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def accounts(user: int, group: int) -> dict[str, bytes]:
    """The files that list users and groups; the jail knows no others."""
    users = {0: "root", NOBODY: "nobody", user: "nobody" if user == NOBODY else "eyelevel"}
    groups = {0: "root", NOBODY: "nogroup", group: "nogroup" if group == NOBODY else "eyelevel"}
    users_groups = {0: 0, NOBODY: NOBODY, user: group}
    return {
        "/etc/passwd": "".join(
            f"{name}:x:{number}:{users_groups[number]}::/:/usr/sbin/nologin\n" for number, name in users.items()
        ).encode(),
        "/etc/group": "".join(f"{name}:x:{number}:\n" for number, name in groups.items()).encode(),
    }


def bind(source: int, path: str, attributes: int) -> None:
    """Mount the open file or folder `source`, with everything mounted below it, at `path` in the new root."""
    target = NEW_ROOT + path
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
    set_attributes(target, attributes, AT_RECURSIVE)


def enter(root: str) -> None:
    """Make the mount at `root` the root of this namespace, and detach the previous root (pivot_root(2), notes)."""
    os.chdir(root)
    check(LIBC.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root")
    check(LIBC.umount2(b".", MNT_DETACH), "umount /")
    os.chdir("/")


def drop_rights(user: tuple[int, ...] | None) -> None:
    """Become `user`, if given, without capabilities, without that user's keys, and without a way to get either.

    Without this, every process of the user can reach the user's keys by their numbers, in all namespaces.
    """
    # The kernel's own use of keys goes through the session keyring. If this call is missing or a container forbids it,
    # there are no keys.
    joined = LIBC.syscall(SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None)
    if joined < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        check(joined, "a session keyring of its own")
    capability = 0
    while LIBC.prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        prctl(PR_CAPBSET_DROP, capability)
        capability += 1
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if user is not None:
        number, group = user
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(number, number, number)
    nothing = (ctypes.c_uint32 * 6)()
    check(LIBC.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), nothing), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    filter_calls(KEY_CALLS)


def filter_calls(lines: tuple[tuple[int, int, int, int], ...]) -> None:
    """Make the kernel check each further system call with the filter `lines` (seccomp(2)); needs
    PR_SET_NO_NEW_PRIVS."""
    array = (FilterLine * len(lines))(*(FilterLine(code, jt, jf, k) for code, k, jt, jf in lines))
    program = ctypes.byref(Filter(len(lines), array))
    # Without this flag, kernels before 5.16 slow down every filtered process, by a protection against speculative reads
    # (seccomp(2)).
    flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW
    check(LIBC.syscall(SYS_SECCOMP, SECCOMP_SET_MODE_FILTER, flags, program), "a filter of system calls")


def require_access(binds: dict[str, str], writable: list[str]) -> None:
    """Raise NotMade when the jail's user may not read, or write, something among `binds`."""
    for place, path in binds.items():
        needed = os.R_OK | (os.W_OK if path in writable else 0) | (os.X_OK if os.path.isdir(place) else 0)
        if not os.access(place, needed):
            raise NotMade(f"user {os.getuid()} may not {'write' if path in writable else 'read'} {path}")


def end_with_jailer(outcome_end: int) -> None:
    """End when the jailer ends, or if it has ended already.

    Call this after the last change of rights, which would undo it (prctl(2)).
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.write(outcome_end, b" ")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, options)]
    check(LIBC.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount {target.removeprefix(NEW_ROOT) or '/'}")


def set_attributes(path: str, attributes: int, flags: int = 0) -> None:
    given = MountAttributes(attr_set=attributes)
    size = ctypes.c_size_t(ctypes.sizeof(given))
    outcome = LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path.encode(), flags, ctypes.byref(given), size)
    check(outcome, f"mount_setattr {path.removeprefix(NEW_ROOT) or '/'}")


def prctl(operation: int, argument: int) -> None:
    check(LIBC.prctl(operation, ctypes.c_ulong(argument), 0, 0, 0), f"prctl {operation}")


def check(outcome: int, what: str) -> None:
    """Raise NotMade with `what` when a call to the C library has failed."""
    if outcome < 0:
        raise NotMade(f"{what}: {os.strerror(ctypes.get_errno())}")
