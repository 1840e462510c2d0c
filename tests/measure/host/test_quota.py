"""A command limited to a share of a processor gets this share, and nothing remains of the limit."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.leaks import groups_folder, own_groups

from base.errors import EyelevelError
from measure.host.quota import PREFIX, checked_share, hierarchy, new_group, remove_abandoned

MAKE_FOLDER = tempfile.mkdtemp
PATIENCE_S = 120.0
# Other tests and sessions make groups and remove abandoned ones at the same time; this prefix keeps this session's
# apart.
OWN = own_groups()
QUOTA = (
    sys.executable,
    "-c",
    f"import sys; from measure.host import quota; quota.PREFIX = {OWN!r}; quota.main(sys.argv[1:])",
)
# Runs for 0.3 s of processor time, and prints which share of a processor it got meanwhile.
BURN = """
import time
began_s, before_s = time.monotonic(), time.process_time()
while time.process_time() < before_s + 0.3:
    pass
print(0.3 / (time.monotonic() - began_s))
"""


def groups() -> set[Path]:
    """The existing groups of this session's limited commands."""
    return {*groups_folder().glob(f"{OWN}*")}


def is_running(process: int) -> bool:
    """Whether `process` is running; one that has ended may still be listed, without a command line."""
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.needs_control_groups
def test_a_command_gets_its_share_and_leaves_no_group() -> None:
    done = subprocess.run([*QUOTA, "0.3", sys.executable, "-c", BURN], capture_output=True, text=True, check=True)
    # The command gets less next to other programs: a machine that stands still for seconds takes most of it.
    assert 0.02 < float(done.stdout) < 0.45
    assert not groups()


def test_a_group_that_another_command_took_for_abandoned_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents: list[Path] = []

    def make(prefix: str, dir: Path) -> str:
        group = MAKE_FOLDER(prefix=prefix, dir=dir)
        if not parents:  # before the group is locked, another command begins
            remove_abandoned(dir, PREFIX)
        parents.append(dir)
        return group

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    # The group is made in an ordinary folder, where no other process makes groups.
    with ExitStack() as stack:
        group = new_group(tmp_path, stack, PREFIX)
        assert len(parents) == 2 and [*tmp_path.iterdir()] == [group]
        remove_abandoned(tmp_path, PREFIX)
        assert group.exists()


@pytest.mark.needs_control_groups
def test_the_status_is_the_commands_and_what_it_leaves_running_is_killed() -> None:
    script = "sleep 100 & echo $!; exit 3"
    done = subprocess.run([*QUOTA, "0.5", "sh", "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert not is_running(int(done.stdout))
    assert not groups()


@pytest.mark.needs_control_groups
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_limit_ends_with_its_command_or_with_the_next_one(number: signal.Signals) -> None:
    command = [*QUOTA, "0.5", "sh", "-c", "echo $$; exec sleep 100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        sleeper = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(number)
        # A command that has only closed its files is still in its group.
        assert select.select([sleeper], [], [], PATIENCE_S)[0]
        os.close(sleeper)
    assert process.returncode == (128 + number if number == signal.SIGTERM else -number)
    assert bool(groups()) is (number == signal.SIGKILL)
    subprocess.run([*QUOTA, "0.5", "true"], check=True)
    assert not groups()


@pytest.mark.needs_root
def test_what_cannot_be_limited_does_not_run(tmp_path: Path) -> None:
    script = 'umount -a -t cgroup,cgroup2; exec "$@"'
    command: list[str | Path] = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        *QUOTA,
        "0.5",
        "touch",
        tmp_path / "ran",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        done.stderr.strip().splitlines()[-1].startswith("eyelevel: the processor time of a command cannot be limited")
    )
    assert not (tmp_path / "ran").exists()


def test_where_groups_are_made() -> None:
    first = "31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    place = hierarchy(first, "4:cpu,cpuacct:/user.slice\n0::/user.slice/a\n")
    assert (place.version, place.parent) == (1, Path("/sys/fs/cgroup/cpu,cpuacct/user.slice"))
    # In a container, the root of the mount is the container's group.
    inside = first.replace(" / ", " /docker/1 ")
    assert hierarchy(inside, "4:cpu,cpuacct:/docker/1\n").parent == Path("/sys/fs/cgroup/cpu,cpuacct")


def test_in_version_2_groups_are_made_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    second = f"31 30 0:26 / {tmp_path} rw,relatime - cgroup2 cgroup2 rw\n"
    place = hierarchy(second, "0::/user.slice/session-1.scope\n")
    assert (place.version, place.parent, place.present) == (2, tmp_path, tmp_path / "user.slice/session-1.scope")
    (tmp_path / "group").mkdir()
    place.limit(tmp_path / "group", 0.5)
    assert (tmp_path / "group/cpu.max").read_text() == "5000 10000"
    (tmp_path / "cgroup.controllers").write_text("io\n")
    with pytest.raises(EyelevelError, match="for processor time"):
        hierarchy(second, "0::/\n")


@pytest.mark.parametrize("text", ["0.05", "1000", "half", "nan", ""])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(EyelevelError, match="share of a processor"):
        checked_share(text)
