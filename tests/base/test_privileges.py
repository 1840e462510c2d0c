"""The required permissions of the kernel are tried before anything is measured, and a missing one is named in one
line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import AS_ORDINARY_USER, namespaced, unshare
from base.places import PROJECT, tool
from base.privileges import missing_namespaces, missing_sandbox, missing_tun, require_browsing, restrictions_of_users

# Two programs: one runs a Python program in fresh namespaces; the other does in them what replays do.
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


# The last line of a trial that a kernel refuses.
REFUSAL = "unshare: unshare failed: Operation not permitted"


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
    tmp_path: Path, name: str, value: str, remedy: str
) -> None:
    path = tmp_path / name.replace(".", "/")
    path.parent.mkdir()
    path.write_text(f"{value}\n")
    text = missing_namespaces(REFUSAL, restrictions_of_users(tmp_path))
    assert remedy in text and "\n" not in text


def test_a_device_that_is_missing_or_closed_is_told_with_its_remedy(tmp_path: Path) -> None:
    missing, closed = missing_tun(tmp_path / "tun"), missing_tun(tmp_path)
    assert missing and missing.startswith(f"{tmp_path}/tun, which is missing; ")
    # Nobody may open a folder for writing, not even root.
    assert closed and closed.startswith(f"{tmp_path}, which you may not open (Is a directory); ")
    for text in (missing, closed):
        assert f"sudo {PROJECT}/setup/grant tun" in text and "\n" not in text


@pytest.mark.needs_namespaces
def test_a_machine_without_the_device_is_found_out() -> None:
    hide = 'mount -t tmpfs none /dev/net && exec "$@"'
    command = [*namespaced("mount"), "sh", "-c", hide, "sh", sys.executable, "-c", ASK]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert "measuring needs /dev/net/tun, which is missing; " in done.stderr.strip().splitlines()[-1]


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
    """If users may make no user namespaces, only the browser fails: everything else has capabilities."""
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
def test_what_keeps_the_sandbox_from_working_is_told_with_its_remedy(restriction: str, remedy: str) -> None:
    """Root gets the same error, although AppArmor restricts root in nothing."""
    text = missing_sandbox(REFUSAL, {"kernel.apparmor_restrict_unprivileged_userns": restriction})
    assert remedy in text and "the browser's sandbox" in text
    assert "\n" not in text


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
    """A process in a nested user namespace would have no rights over the networks around it."""
    program = "from base.namespaces import namespaced; print('--user' in namespaced())"
    command = [*namespaced("net"), sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stdout == "False\n", done.stderr


def test_a_program_with_a_profile_makes_the_namespaces(tmp_path: Path) -> None:
    program = tmp_path / "unshare"
    assert unshare(program) == tool("unshare")
    program.touch()
    assert unshare(program) == program
    assert unshare() in namespaced()
