"""Ordinary users get only the missing rights; without root, the command that grants them is named."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from base.namespaces import AS_ORDINARY_USER, PROFILED_UNSHARE, namespaced
from base.places import PROJECT

GRANT = PROJECT / "setup" / "grant"
# Paths below a machine's root folder.
MODULES = "etc/modules-load.d/eyelevel.conf"
DEVICE_RULES = "etc/udev/rules.d/60-eyelevel.rules"
TUN = "dev/net/tun"
CPU_LATENCY = "dev/cpu_dma_latency"
CONGESTION_CONTROLS = "proc/sys/net/ipv4/tcp_available_congestion_control"
# Replaces /etc by another folder, and the folder of programs that administrators add by an empty one. Files written
# there in a separate mount namespace never reach the machine.
IN_PLACE_OF_ETC = 'mount --bind "$1" /etc && mount -t tmpfs none /usr/local && shift && exec "$@"'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The root folder of a machine that withholds all permissions."""
    (tmp_path / "dev" / "net").mkdir(parents=True)
    for device in (tmp_path / TUN, tmp_path / CPU_LATENCY):
        device.touch()
        device.chmod(0o600)
    restriction = tmp_path / "proc" / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns"
    restriction.parent.mkdir(parents=True)
    restriction.write_text("1\n")
    (tmp_path / CONGESTION_CONTROLS).parent.mkdir(parents=True)
    (tmp_path / CONGESTION_CONTROLS).write_text("reno cubic\n")
    module = tmp_path / "lib" / "modules" / os.uname().release / "kernel" / "net" / "ipv4" / "tcp_bbr.ko.xz"
    module.parent.mkdir(parents=True)
    module.touch()
    return tmp_path


def grant(machine: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(machine), "EYELEVEL_GRANT_ROOT": str(machine)}
    command: list[str | Path] = [*prefix, GRANT, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def files(machine: Path) -> set[str]:
    return {str(path.relative_to(machine)) for path in machine.rglob("*") if path.is_file()}


def test_what_is_missing_is_granted_one_by_one(machine: Path) -> None:
    before = files(machine)
    assert grant(machine, "missing", "nobody").stdout.splitlines() == [
        "tun",
        "awake",
        "bbr",
        "apparmor",
        "priority nobody",
    ]
    assert grant(machine, "priority", "nobody").returncode == 0
    assert files(machine) - before == {"etc/security/limits.d/eyelevel.conf"}
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun", "awake", "bbr", "apparmor"]
    assert grant(machine, "apparmor").returncode == 0
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun", "awake", "bbr"]
    assert grant(machine, "tun").returncode == 0
    assert (machine / MODULES).read_text() == "tun\n"


def test_several_are_granted_at_once(machine: Path) -> None:
    for _ in range(2):
        assert grant(machine, "tun", "priority", "nobody", "awake", "bbr").returncode == 0
    assert (machine / MODULES).read_text() == "tun\ntcp_bbr\n"
    assert (machine / DEVICE_RULES).read_text().splitlines() == [
        'KERNEL=="tun", MODE="0666"',
        'KERNEL=="cpu_dma_latency", MODE="0666"',
    ]
    # The devices become accessible when the rules are applied, and BBR exists when it is loaded.
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun", "awake", "bbr", "apparmor"]


def test_bbr_that_is_built_in_or_nowhere_is_not_missing(machine: Path) -> None:
    """There is nothing that an administrator could load, and often no folder of modules."""
    shutil.rmtree(machine / "lib" / "modules")
    before = files(machine)
    assert "bbr" not in grant(machine, "missing").stdout.split()
    done = grant(machine, "bbr")
    assert done.returncode == 1
    assert done.stderr == "eyelevel: this kernel has no BBR, neither built in nor as a module\n"
    (machine / CONGESTION_CONTROLS).write_text("reno bbr cubic\n")
    assert "bbr" not in grant(machine, "missing").stdout.split()
    assert grant(machine, "bbr").returncode == 0
    assert files(machine) == before


def test_processors_are_not_missing_where_nobody_could_keep_them_awake(machine: Path) -> None:
    (machine / CPU_LATENCY).unlink()
    before = files(machine)
    assert "awake" not in grant(machine, "missing").stdout.split()
    done = grant(machine, "awake")
    assert done.returncode == 1
    assert done.stderr == f"eyelevel: this kernel has no {machine / CPU_LATENCY}, which keeps processors awake\n"
    assert files(machine) == before


def test_each_user_has_one_line_of_limits(machine: Path) -> None:
    for user in ("nobody", "root", "nobody"):
        assert grant(machine, "priority", user).returncode == 0
    limits = machine / "etc" / "security" / "limits.d" / "eyelevel.conf"
    assert limits.read_text() == "nobody - rtprio 1\nroot - rtprio 1\n"


def test_root_needs_no_limit_and_a_machine_without_the_restriction_no_profile(machine: Path) -> None:
    (machine / CONGESTION_CONTROLS).write_text("reno cubic bbr\n")
    (machine / "proc" / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("0\n")
    for device in (TUN, CPU_LATENCY):
        (machine / device).chmod(0o666)
    assert grant(machine, "missing", "root").stdout == ""


def test_the_profile_is_of_the_program_that_makes_our_namespaces(machine: Path) -> None:
    """The profile applies to no other program: AppArmor still denies namespaces to everything else."""
    grant(machine, "apparmor")
    profile = (machine / "etc" / "apparmor.d" / "eyelevel").read_text()
    assert f"profile eyelevel {PROFILED_UNSHARE} flags=(unconfined) {{\n  userns,\n}}" in profile
    program = machine / PROFILED_UNSHARE.relative_to("/")
    assert program.read_bytes() == Path("/usr/bin/unshare").read_bytes()
    assert program.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("arguments", [(), ("everything",), ("tun", "now"), ("priority",), ("bbr", "priority")])
def test_what_is_not_understood_is_answered_with_the_usage(machine: Path, arguments: tuple[str, ...]) -> None:
    done = grant(machine, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: setup/grant tun")


def test_an_unknown_user_is_told(machine: Path) -> None:
    before = files(machine)
    done = grant(machine, "priority", "no-such-user")
    assert (done.returncode, done.stderr) == (1, "eyelevel: there is no user no-such-user here\n")
    assert files(machine) == before


@pytest.mark.needs_namespaces
@pytest.mark.needs_user_namespaces
def test_without_root_nothing_is_granted(tmp_path: Path) -> None:
    """Another user in root's user namespace may still write root's files, so the test keeps these out of reach."""
    etc = tmp_path / "etc"
    etc.mkdir()
    for name in ("passwd", "group"):
        shutil.copy(f"/etc/{name}", etc)
    before = files(etc)
    for user, status in ((AS_ORDINARY_USER, 1), (("unshare", "--user", "--map-root-user"), 0)):
        command = [*namespaced("mount"), "sh", "-c", IN_PLACE_OF_ETC, "sh", etc, *user, GRANT, "priority", "nobody"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        if status:
            assert done.stderr == f"eyelevel: only root can grant this: sudo {GRANT} priority nobody\n"
            assert files(etc) == before
    assert files(etc) - before == {"security/limits.d/eyelevel.conf"}  # otherwise the refusal would prove nothing
