"""The jail: a program in it has access only to what it was given, and ends as if there were no jail."""

import errno
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from base.errors import EyelevelError
from base.jail import NOBODY, Jail, file_in, hand_over, jail_user, jailed, opened_in, shared_folders
from base.namespaces import namespaced

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timeout(60)]

# Tries to write wherever it can look, and prints where it succeeded.
WRITE_EVERYWHERE = """
import os
for folder, _, _ in os.walk("/"):
    if not folder.startswith("/proc/"):
        try:
            os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))  # without a name: it leaves nothing, jail or no jail
            print(folder)
        except OSError:
            pass
"""
# Puts a key into the user's keyring, keeps it while its input is open, and prints the numbers of both. With such
# numbers as arguments, it instead reads that key. It has a new session without that keyring, so it first links the
# keyring to its session, by number. (linux/keyctl.h)
KEYS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
KEYCTL_GET_KEYRING_ID, KEYCTL_JOIN, KEYCTL_LINK, KEYCTL_UNLINK, KEYCTL_READ, KEYCTL_SET_TIMEOUT = 0, 1, 8, 9, 11, 15
SESSION, USER = -3, -4

def call(number, *arguments):
    outcome = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return outcome if outcome >= 0 else -ctypes.get_errno()

def keyctl(*arguments):
    return call(250, *arguments)

user, group, *what = sys.argv[1:]
if os.getuid() != int(user):
    os.setresgid(*3 * [int(group)])
    os.setresuid(*3 * [int(user)])
keyctl(KEYCTL_JOIN, None)
if what == ["make"]:
    ring = keyctl(KEYCTL_GET_KEYRING_ID, USER, 1)
    key = call(248, b"user", b"eyelevel-test", b"secret", 6, ring)
    keyctl(KEYCTL_SET_TIMEOUT, key, 120)
    print(key, ring, flush=True)
    sys.stdin.read()
    keyctl(KEYCTL_UNLINK, key, ring)
else:
    key, ring = map(int, what)
    keyctl(KEYCTL_LINK, ring, SESSION)
    content = ctypes.create_string_buffer(6)
    outcome = keyctl(KEYCTL_READ, key, content, 6)
    print(content.raw if outcome == 6 else outcome)
"""
# Tries to undo each part of the jail, with all capabilities over its own namespaces.
UNDO = """
set -u
for path in / /usr "$1"; do mount -o remount,bind,rw "$path" && echo "$path is writable"; done
umount -l /etc/fonts && echo /etc/fonts is gone
mount --bind "$1" /usr && mount -o remount,bind,rw /usr && echo "a copy of $1 is writable"
touch "$1/written" && echo "$1 was written"
true
"""


def command_in(jail: Jail, *command: str | Path) -> list[str | Path]:
    """The command line that runs `command` in `jail`, in namespaces like those of a replay."""
    return [*namespaced("mount", "net", "ipc"), *jailed(jail, command)]


def run(jail: Jail, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command_in(jail, *command), capture_output=True, text=True, check=False)


@pytest.fixture
def folders(tmp_path: Path) -> Jail:
    """A folder to read, with a file, and a folder to write, both below one that other users may not enter."""
    private = tmp_path / "private"
    for name in ("readable", "writable"):
        (private / name).mkdir(parents=True)
        (private / name / "file").write_text(name)
    (private / "secret").write_text("secret")
    private.chmod(0o700)
    return Jail((private / "readable",), (private / "writable",))


def test_it_reads_what_it_is_given_and_nothing_beside(folders: Jail) -> None:
    readable = folders.readable[0]
    private = readable.parent
    done = run(
        folders, "sh", "-c", f"cat {readable}/file {private}/writable/file; ls {private} / /root /home /etc/shadow"
    )
    assert done.stdout.startswith("readablewritable")
    listed = done.stdout.split()
    assert "secret" not in listed
    assert {"readable", "writable", "usr", "proc"} < set(listed)
    assert not {"root", "home", "run", "boot", "mnt", "/etc/shadow"} & set(listed)


def test_it_writes_what_it_is_given_and_nothing_else(folders: Jail) -> None:
    done = run(folders, sys.executable, "-c", WRITE_EVERYWHERE)
    assert set(done.stdout.splitlines()) == {str(folders.writable[0]), "/dev/shm"}


def test_no_key_of_its_users_is_in_reach(tmp_path: Path) -> None:
    """All processes of a user can reach the user's keyrings; by number, they reach even those of other namespaces."""
    tmp_path.chmod(0o755)
    program = tmp_path / "keys.py"
    program.write_text(KEYS)
    user, group = jail_user() or (os.getuid(), os.getgid())
    as_user: list[str | Path] = ["python3", program, str(user), str(group)]
    with subprocess.Popen([*as_user, "make"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin and holder.stdout
        if "-" in (numbers := holder.stdout.readline()):
            pytest.skip("this system has no keys")
        outside = subprocess.run([*as_user, *numbers.split()], capture_output=True, text=True, check=False)
        inside = run(Jail((program,)), *as_user, *numbers.split())
        listed = run(Jail(), "cat", "/proc/keys", "/proc/key-users")
        holder.stdin.close()
    assert outside.stdout == "b'secret'\n", outside.stderr  # otherwise the jail would prove nothing
    assert inside.stdout == f"-{errno.ENOSYS}\n", inside.stderr
    assert listed.stdout == ""


def test_it_is_an_ordinary_user_without_capabilities(folders: Jail) -> None:
    done = run(folders, "sh", "-c", "id -u; id -G; cat /proc/self/status /proc/1/status")
    user, groups, *status = done.stdout.splitlines()
    expected = jail_user() or (os.getuid(), os.getgid())
    assert int(user) == expected[0] != 0
    assert groups.split()[0] == str(expected[1])
    if jail_user():
        assert len(groups.split()) == 1
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert [line.split()[1] for line in status if line.startswith(name)] == ["0" * 16] * 2
    assert [line.split()[1] for line in status if line.startswith("NoNewPrivs")] == ["1"] * 2


def test_it_sees_no_processes_but_its_own(folders: Jail) -> None:
    done = run(folders, "sh", "-c", "ls /proc; cat /proc/[0-9]*/cmdline; echo; echo sound")
    assert len([name for name in done.stdout.split() if name.isdigit()]) <= 4
    assert "unshare" not in done.stdout
    assert done.stdout.endswith("sound\n")


def test_a_user_namespace_can_be_made_in_it_and_does_not_lead_out(folders: Jail) -> None:
    """Chromium's sandbox needs such a namespace; all capabilities in it must not undo the jail."""
    undo = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", UNDO, "sh", folders.readable[0])
    done = run(folders, *undo)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert not (folders.readable[0] / "written").exists()


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 128 + 9), ("exec nonesuch", 127)])
def test_its_status_is_the_commands(script: str, status: int) -> None:
    command = [*namespaced("mount"), "sh", "-c", '"$@"; echo $?', "sh", *jailed(Jail(), ["sh", "-c", script])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == status


def test_the_environment_has_nothing_that_a_user_may_keep_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLOUD_KEY", "http_proxy", "NEEDED"):
        monkeypatch.setenv(name, f"{name}-value")
    monkeypatch.setenv("EYELEVEL_NUMBER", "7")
    done = run(Jail(variables=("NEEDED",)), "sh", "-c", "env; cat /proc/[0-9]*/environ")
    assert "NEEDED=NEEDED-value" in done.stdout
    assert "EYELEVEL_NUMBER=7" in done.stdout
    assert "PATH=" in done.stdout
    assert "CLOUD_KEY" not in done.stdout
    assert "http_proxy" not in done.stdout


def test_a_command_that_is_not_there_is_one_line() -> None:
    done = run(Jail(), "nonesuch")
    assert (done.returncode, done.stderr) == (127, "eyelevel: cannot run nonesuch: No such file or directory\n")


def test_sigterm_reaches_the_command_which_ends_in_order(tmp_path: Path) -> None:
    """The command is not process 1 of the jail: process 1 ignores signals for which it has no handler. Processes that
    the command leaves behind end with it."""
    tmp_path.chmod(0o755)
    # The shell of the namespaces, which is the jail's caller, forwards the signal.
    script = "trap 'echo ended; exit 3' TERM; sleep 1000 & echo ready; wait"
    caller = 'trap "kill -TERM \\$jail" TERM; "$@" & jail=$!; wait $jail; wait $jail; echo $?'
    command = [*namespaced("mount"), "sh", "-c", caller, "sh", *jailed(Jail(), ["sh", "-c", script])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        signal_first_inside(process.pid, signal.SIGTERM)
        # Reading succeeds only when nobody has the pipe open any more, including the forgotten sleep.
        assert process.stdout.read() == "ended\n3\n"


def test_all_in_it_ends_when_the_jailer_is_killed() -> None:
    script = "echo ready; sleep 1000"
    with subprocess.Popen(command_in(Jail(), "sh", "-c", script), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        signal_first_inside(process.pid, signal.SIGKILL)
        assert process.stdout.read() == ""


def signal_first_inside(outermost: int, number: signal.Signals) -> None:
    """Send a signal to the first process inside the namespaces of `outermost`."""
    (inside,) = Path(f"/proc/{outermost}/task/{outermost}/children").read_text().split()
    os.kill(int(inside), number)


def test_what_is_missing_is_one_line_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"sh needs .*/nonesuch, which is missing"):
        jailed(Jail((tmp_path / "nonesuch",)), ["sh"])


@pytest.mark.skipif(jail_user() != (NOBODY, NOBODY), reason="the user of the jail is our own")
def test_what_its_user_may_not_read_is_one_line(folders: Jail) -> None:
    folders.readable[0].chmod(0o700)
    done = run(folders, "true")
    assert done.returncode == 125
    assert done.stderr == f"eyelevel: true cannot be jailed: user {NOBODY} may not read {folders.readable[0]}\n"


def test_x_servers_have_their_sockets_where_the_jail_says(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "X0").touch()
    script = "ls /tmp/.X11-unix; touch /tmp/.X11-unix/X1"
    assert run(Jail(x_sockets=tmp_path), "sh", "-c", script).stdout == "X0\n"
    run(Jail(writable=(tmp_path,), x_sockets=tmp_path), "sh", "-c", script)
    assert (tmp_path / "X1").exists()


@pytest.mark.parametrize(
    ("user", "caller", "jailed_as"), [(0, "1234", (1234, 1235)), (0, "0", (65534, 65534)), (1000, "1234", None)]
)
def test_behind_sudo_its_user_is_the_one_who_called(
    user: int, caller: str, jailed_as: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("SUDO_UID", caller)
    monkeypatch.setenv("SUDO_GID", "1235")
    assert jail_user() == jailed_as


def test_a_shared_folder_is_also_the_home_of_who_called_sudo_and_what_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "u").symlink_to("real")
    caller = pwd.struct_passwd(("u", "x", 1234, 1234, "", str(tmp_path / "u"), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", {1234: caller}.__getitem__)
    monkeypatch.setenv("HOME", "/root")
    for user in ("4321", "1234"):
        monkeypatch.setenv("SUDO_UID", user)
        assert shared_folders() >= {Path("/"), Path("/root"), Path("/tmp"), Path("/var/tmp")}
        for folder in (tmp_path / "u", tmp_path / "real", tmp_path):
            assert (folder in shared_folders()) == (user == "1234")


@pytest.mark.needs_root
def test_no_link_that_is_put_in_the_way_hands_over_what_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program already in the jail may put a link in place of a folder that is just being handed over."""
    for folder in ("elsewhere", "writable/folder"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").touch()
    genuine = os.chown

    def chown(path: str | Path, user: int, group: int, **options: Any) -> None:
        folder = tmp_path / "writable" / "folder"
        if Path(path).name == "file" and not folder.is_symlink():
            folder.rename(tmp_path / "writable" / "aside")
            folder.symlink_to(tmp_path / "elsewhere")
        genuine(path, user, group, **options)

    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "chown", chown)
    hand_over(tmp_path / "writable")
    assert (tmp_path / "writable" / "folder").is_symlink()
    assert (tmp_path / "elsewhere" / "file").stat().st_uid == 0
    assert (tmp_path / "writable" / "aside" / "file").stat().st_uid == NOBODY


def test_a_program_behind_links_below_a_closed_folder_runs(tmp_path: Path) -> None:
    """The cache of programs is such a folder if it is below root's home."""
    closed = tmp_path / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "program").write_text("#!/bin/sh\necho ran $0\n")
    (closed / "program").chmod(0o755)
    (closed / "second").symlink_to("program")
    (closed / "bin" / "link").symlink_to("../second")
    closed.chmod(0o700)
    for program in ("bin/link", "second", "program"):
        assert run(Jail((closed / "bin" / "link",)), closed / program).stdout == f"ran {closed}/{program}\n"
    assert run(Jail((closed / "bin" / "link",)), "sh", "-c", f"{closed}/second").stdout == f"ran {closed}/second\n"


@pytest.mark.parametrize("place", ["file", "folder/file", "folder"])
def test_what_is_left_in_it_is_taken_only_if_no_link_leads_away(tmp_path: Path, place: str) -> None:
    writable = tmp_path / "writable"
    (writable / "folder").mkdir(parents=True)
    for name in ("file", "folder/file"):
        (writable / name).write_text("content")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_text("secret")
    taken = [file_in(writable, name) for name in ("file", "folder/file", "folder", "nonesuch")]
    assert taken == [writable / "file", writable / "folder/file", None, None]
    for name, path in zip(("file", "folder/file", "folder", "nonesuch"), taken, strict=True):
        assert opened(writable, name) == (path and b"content")
    (writable / place).rename(writable / "aside")
    (writable / place).symlink_to(secret if place == "folder" else secret / "file")
    assert file_in(writable, "folder/file" if place == "folder" else place) is None
    assert opened(writable, "folder/file" if place == "folder" else place) is None


def test_a_pipe_that_is_left_in_it_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert opened(tmp_path, "pipe") is None
    assert opened(tmp_path / "pipe", "file") is None


def opened(folder: Path, name: str) -> bytes | None:
    """The content of the file that `opened_in` opens, or None."""
    if file := opened_in(folder, name):
        with file:
            return file.read()
    return None
