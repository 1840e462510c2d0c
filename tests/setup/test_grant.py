"""What ordinary users are granted: just that, for what is missing alone, and told where there is no root."""

import subprocess
from pathlib import Path

import pytest

from base.namespaces import AS_ORDINARY_USER, PROFILED_UNSHARE
from base.places import PROJECT

GRANT = PROJECT / "setup" / "grant"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The folder / of a machine that withholds everything."""
    (tmp_path / "dev" / "net").mkdir(parents=True)
    tun = tmp_path / "dev" / "net" / "tun"
    tun.touch()
    tun.chmod(0o600)
    restriction = tmp_path / "proc" / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns"
    restriction.parent.mkdir(parents=True)
    restriction.write_text("1\n")
    return tmp_path


def grant(machine: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(machine), "EYELEVEL_GRANT_ROOT": str(machine)}
    command: list[str | Path] = [*prefix, GRANT, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def files(machine: Path) -> set[str]:
    return {str(path.relative_to(machine)) for path in machine.rglob("*") if path.is_file()}


def test_what_is_missing_is_granted_one_by_one(machine: Path) -> None:
    before = files(machine)
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun", "apparmor", "priority nobody"]
    assert grant(machine, "priority", "nobody").returncode == 0
    assert files(machine) - before == {"etc/security/limits.d/eyelevel.conf"}
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun", "apparmor"]
    assert grant(machine, "apparmor").returncode == 0
    assert grant(machine, "missing", "nobody").stdout.splitlines() == ["tun"]
    assert grant(machine, "tun").returncode == 0
    assert "tun" in (machine / "etc" / "modules-load.d" / "eyelevel.conf").read_text().split()


def test_each_user_has_one_line_of_limits(machine: Path) -> None:
    for user in ("nobody", "root", "nobody"):
        assert grant(machine, "priority", user).returncode == 0
    limits = machine / "etc" / "security" / "limits.d" / "eyelevel.conf"
    assert limits.read_text() == "nobody - rtprio 1\nroot - rtprio 1\n"


def test_root_needs_no_limit_and_a_machine_without_the_restriction_no_profile(machine: Path) -> None:
    (machine / "proc" / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("0\n")
    (machine / "dev" / "net" / "tun").chmod(0o666)
    assert grant(machine, "missing", "root").stdout == ""


def test_the_profile_is_of_the_program_that_makes_our_namespaces(machine: Path) -> None:
    """And of no other: AppArmor goes on keeping namespaces from whatever else users run."""
    grant(machine, "apparmor")
    profile = (machine / "etc" / "apparmor.d" / "eyelevel").read_text()
    assert f"profile eyelevel {PROFILED_UNSHARE} flags=(unconfined) {{\n  userns,\n}}" in profile
    program = machine / PROFILED_UNSHARE.relative_to("/")
    assert program.read_bytes() == Path("/usr/bin/unshare").read_bytes()
    assert program.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("arguments", [(), ("everything",), ("tun", "now"), ("priority",)])
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
def test_without_root_nothing_is_granted(machine: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(machine)}
    command: list[str | Path] = [*AS_ORDINARY_USER, GRANT, "priority", "nobody"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"eyelevel: only root can grant this: sudo {GRANT} priority nobody\n"
