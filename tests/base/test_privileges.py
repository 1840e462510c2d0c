"""The demands on the kernel are tried before anything is measured, and each that is not met is named in one line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from base import namespaces, privileges
from base.errors import EyelevelError
from base.namespaces import AS_ORDINARY_USER, namespaced
from base.places import PROJECT
from base.privileges import require_browsing, require_namespaces

# Runs a program of Python's in fresh namespaces; and one that does there what replays do.
OUTSIDE = """
import subprocess, sys
from base.namespaces import namespaced
subprocess.run([*namespaced("net", "mount"), sys.executable, "-c", sys.argv[1]], check=True)
"""
INSIDE = """
import os, subprocess
print(os.getuid(), os.getpid())
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
"""
ASK = "from base.privileges import require_namespaces; require_namespaces('measuring')"
ASK_TO_BROWSE = "from base.privileges import require_browsing; require_browsing('measuring')"


@pytest.fixture(autouse=True)
def not_known_yet() -> Iterator[None]:
    questions = (privileges._missing_namespaces, privileges._missing_sandbox)
    for question in questions:
        question.cache_clear()
    yield
    for question in questions:
        question.cache_clear()


def refusal() -> str:
    with pytest.raises(EyelevelError) as error:
        require_namespaces("measuring")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def sysctls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sysctls of a kernel on which a user's namespaces come to nothing."""
    monkeypatch.setattr(privileges, "SYSCTLS", tmp_path)
    monkeypatch.setattr(privileges, "has_capabilities", lambda: False)
    monkeypatch.setattr(
        privileges, "namespaced", lambda *_: ["sh", "-c", "echo ip: Operation not permitted >&2; exit 2"]
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("user.max_user_namespaces", "0", "echo user.max_user_namespaces=10000 | sudo tee /etc/sysctl.d/"),
        ("user.max_net_namespaces", "0", "echo user.max_net_namespaces=10000 | sudo tee /etc/sysctl.d/"),
        ("kernel.unprivileged_userns_clone", "0", "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", f"sudo {PROJECT}/setup/grant apparmor"),
        ("kernel.apparmor_restrict_unprivileged_userns", "0", "its seccomp profile has to allow unshare"),
    ],
)
def test_the_setting_that_withholds_namespaces_is_told_with_its_remedy(
    sysctls: Path, name: str, value: str, remedy: str
) -> None:
    path = sysctls / name.replace(".", "/")
    path.parent.mkdir()
    path.write_text(f"{value}\n")
    assert remedy in refusal()


def test_a_device_that_is_missing_or_closed_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "_missing_namespaces", lambda: None)
    monkeypatch.setattr(privileges, "TUN", tmp_path / "tun")
    assert f"needs {tmp_path}/tun, which is not there" in refusal()
    assert f"sudo {PROJECT}/setup/grant tun" in refusal()

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert "which you may not open (Permission denied)" in refusal()


@pytest.mark.needs_user_namespaces
def test_a_kernel_that_forbids_namespaces_is_found_out() -> None:
    forbid = "echo 0 > /proc/sys/user/max_net_namespaces && exec setpriv --bounding-set -all --inh-caps -all"
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{forbid} "$@"', "sh", sys.executable, "-c", ASK]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "measuring needs namespaces, which this kernel forbids to users (user.max_net_namespaces is 0)" in last


@pytest.mark.needs_namespaces
@pytest.mark.needs_user_namespaces
def test_a_browser_whose_sandbox_would_not_work_is_found_out_before_anything_starts() -> None:
    """With capabilities all else works where users may make no user namespaces; the browser does without any."""
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    for question, fault in (
        (ASK, None),
        (ASK_TO_BROWSE, "user namespaces for the browser's sandbox, which this kernel forbids to users"),
    ):
        command = [*AS_ORDINARY_USER, "--keep-caps", "sh", "-c", forbid, "sh", sys.executable, "-c", question]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (fault is None), done.stderr
        if fault:
            last = done.stderr.strip().splitlines()[-1]
            assert f"measuring needs {fault} (user.max_user_namespaces is 0); allow them with: echo user.max_" in last


@pytest.mark.needs_namespaces
def test_a_browser_whose_sandbox_works_is_let_pass() -> None:
    require_browsing("measuring")


@pytest.mark.parametrize(
    ("restriction", "remedy"),
    [("1", f"sudo {PROJECT}/setup/grant apparmor"), ("0", "its seccomp profile has to allow unshare and clone")],
)
def test_what_keeps_the_sandbox_from_working_is_told_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restriction: str, remedy: str
) -> None:
    """To root, too, whom AppArmor keeps nothing from."""
    monkeypatch.setattr(privileges, "SYSCTLS", tmp_path)
    monkeypatch.setattr(privileges, "require_namespaces", lambda _: None)
    monkeypatch.setattr(
        privileges, "jailed", lambda *_: ["sh", "-c", "echo unshare: Operation not permitted >&2; exit 1"]
    )
    monkeypatch.setattr(privileges, "namespaced", lambda *_: [])
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns").write_text(f"{restriction}\n")
    with pytest.raises(EyelevelError) as error:
        require_browsing("measuring")
    assert remedy in str(error.value)
    assert "the browser's sandbox" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.needs_namespaces
@pytest.mark.needs_user_namespaces
@pytest.mark.parametrize("prefix", [(), AS_ORDINARY_USER], ids=["as we are", "as an ordinary user"])
def test_who_is_inside_keeps_the_user_and_may_set_up_networks_and_mounts(prefix: tuple[str, ...]) -> None:
    command = [*prefix, sys.executable, "-c", OUTSIDE, INSIDE]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [str(1000 if prefix else os.geteuid()), "1"], done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.needs_namespaces
def test_namespaces_within_ours_have_no_user_of_their_own() -> None:
    """Nested users would have no say over the networks around them."""
    program = "from base.namespaces import namespaced; print('--user' in namespaced())"
    command = [*namespaced("net"), sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_a_program_with_a_profile_makes_the_namespaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "unshare"
    monkeypatch.setattr(namespaces, "PROFILED_UNSHARE", program)
    assert program not in namespaced()
    program.touch()
    assert program in namespaced()
