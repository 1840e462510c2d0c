"""Set-up is done once and resumes where it stopped; obstacles are reported in one line, beforehand."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import leaks
from support.processes import still_there

from base.namespaces import AS_ORDINARY_USER, namespaced
from base.places import PROJECT
from eyelevel import make
from record.formats import formats

# A step that logs each act; it fails or waits until a given file exists.
STEP = """
title="the {name} step"
remedy="look for {name}"
inputs() {{ cat inputs; }}
present() {{ [[ -e $EYELEVEL_CACHE/{name} ]]; }}
check_system() {{ :; }}
missing() {{ cat missing 2>/dev/null || true; }}
{further}
act() {{
  echo {name} >>acted
  echo "acting on {name}"
  {action}
  touch "$EYELEVEL_CACHE/{name}"
}}
"""


class Checkout:
    """A project that contains only a set-up, whose steps log what they do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        shutil.copytree(PROJECT / "setup", folder / "setup")
        shutil.rmtree(folder / "setup" / "steps")
        shutil.rmtree(folder / "setup" / "optional", ignore_errors=True)
        (folder / "setup" / "steps").mkdir()
        (folder / "inputs").touch()

    def add_step(self, file: str, action: str = ":", further: str = "") -> None:
        name = file.partition("-")[2]
        text = STEP.format(name=name, action=action, further=further)
        (self.folder / "setup" / "steps" / f"{file}.sh").write_text(text)

    def add_optional_step(self, kind: str, name: str) -> None:
        folder = self.folder / "setup" / "optional" / kind
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.sh").write_text(STEP.format(name=name, action=":", further=""))

    def setup(self, *prefix: str | Path, optional: Sequence[str] = (), **environment: str) -> tuple[int, str]:
        script = self.folder / "setup" / "setup.sh"
        return run(*prefix, script, *optional, EYELEVEL_CACHE=str(self.cache), **environment)

    @contextmanager
    def setting_up(self) -> Iterator["subprocess.Popen[str]"]:
        """A set-up that runs for the duration of the block, with all its child processes."""
        with subprocess.Popen(
            [self.folder / "setup" / "setup.sh"],
            env={**os.environ, "EYELEVEL_CACHE": str(self.cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    @property
    def acted(self) -> list[str]:
        file = self.folder / "acted"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path / "project")
    checkout.add_step("1-packages")
    checkout.add_step("2-second")
    return checkout


def run(*command: str | Path, **environment: str) -> tuple[int, str]:
    """Run a command in the project's folder; return its status and its output."""
    done = subprocess.run(
        command,
        cwd=PROJECT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_help_is_the_default_and_lists_every_target() -> None:
    of_make = re.findall(r"^([a-z]+):(?!=)", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    targets = {*of_make, *make.targets()}
    assert {"setup", "test", "import", "replay", "campaign", "clean", "grid"} <= targets
    status, said = run("make")
    assert status == 0
    for target in targets:
        assert f"make {target} " in said


def test_help_lists_every_format_that_can_be_imported() -> None:
    _, said = run("make", "help")
    assert [form.DESCRIPTION for form in formats() if f" {form.DESCRIPTION}\n" not in said] == []


@pytest.mark.parametrize(("target", "variable"), [("import", "FROM"), ("replay", "NET")])
def test_a_target_asks_for_what_it_needs_before_anything_is_done(tmp_path: Path, target: str, variable: str) -> None:
    status, said = run("make", target, EYELEVEL_CACHE=str(tmp_path / "cache"))
    assert status != 0
    assert f"{target} needs {variable}" in said
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_shows_the_commands_and_runs_none(tmp_path: Path) -> None:
    command = ("make", "-n", "campaign", "NET=lte", "PROTO=tcp,quic")
    status, said = run(*command)
    assert status == 0 and "eyelevel campaign --net lte --proto tcp,quic\n" in said
    # Before the first set-up, no installed program can report this.
    status, said = run(*command, EYELEVEL_CACHE=str(tmp_path / "cache"))
    assert status == 0 and "setup/setup.sh" in said
    assert not (tmp_path / "cache").exists()


def test_a_setup_is_done_once_and_then_silent(checkout: Checkout) -> None:
    status, said = checkout.setup()
    assert (status, checkout.acted) == (0, ["packages", "second"])
    assert "[1/2] the packages step: done" in said
    assert checkout.setup() == (0, "")
    assert checkout.acted == ["packages", "second"]


def test_what_is_missing_or_out_of_date_is_made_again_and_nothing_else(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.cache / "second").unlink()
    checkout.setup()
    assert checkout.acted == ["packages", "second", "second"]
    (checkout.folder / "inputs").write_text("changed")
    checkout.setup()
    assert checkout.acted == ["packages", "second", "second", "packages", "second"]


def test_what_is_optional_is_made_once_when_it_is_asked_for(checkout: Checkout) -> None:
    checkout.add_optional_step("servers", "caddy")
    checkout.add_optional_step("browsers", "firefox")
    checkout.setup()
    assert checkout.acted == ["packages", "second"]
    assert checkout.setup(optional=["servers/caddy"])[0] == 0
    assert checkout.acted == ["packages", "second", "caddy"]
    assert checkout.setup(optional=["servers/caddy"]) == (0, "")


def test_an_older_rust_than_firefoxs_driver_needs_is_told_in_one_line_before_anything_is_downloaded(
    checkout: Checkout, tmp_path: Path
) -> None:
    shutil.copytree(PROJECT / "setup" / "optional", checkout.folder / "setup" / "optional")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, action in (("rustc", 'echo "rustc 1.85.0 (4d91de4e4 2025-02-17)"'), ("cargo", 'touch "$0.ran"')):
        (programs / name).write_text(f"#!/bin/sh\n{action}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    status, said = checkout.setup(optional=["browsers/firefox"], PATH=path)
    assert status == 1
    assert [line for line in said.splitlines() if "1.86" in line] == [
        "eyelevel: no rustc of at least 1.86 with its cargo on the PATH (found 1.85.0); this system's packages have "
        "none: install one, by rustup for example, and put it first on the PATH"
    ]
    assert not (programs / "cargo.ran").exists()
    assert run(checkout.folder / "setup" / "cargo", "--check", PATH=path, EYELEVEL_CACHE=str(checkout.cache)) == (0, "")


@pytest.mark.slow
def test_what_one_checkout_built_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    checkouts = [tmp_path / name for name in ("older", "newer")]
    for checkout in checkouts:
        shutil.copytree(PROJECT / "setup", checkout / "setup")
        source = checkout / "shells" / "src" / "main.rs"
        source.parent.mkdir(parents=True)
        (checkout / "shells" / "Cargo.toml").write_text('[package]\nname = "mm-name"\nedition = "2021"\n')
        source.write_text(f'fn main() {{ print!("{checkout.name}") }}')
        # Much older than both builds.
        os.utime(source, (0, 0))
    environment = {"EYELEVEL_CACHE": str(cache)}
    install = ". setup/common.sh; cd $PROJECT; setup/cargo build --release --quiet; install_built_program mm-name"
    # At the end, the older program is installed again, although the newer one was built in the meantime.
    for checkout in (*checkouts, checkouts[0]):
        script = install.replace("setup/common.sh", str(checkout / "setup" / "common.sh"))
        assert run("bash", "-euc", script, **environment) == (0, "")
        assert run(cache / "bin" / "mm-name") == (0, checkout.name)
    # An installed program does not change when its sources are built for tests.
    (checkouts[0] / "shells" / "src" / "main.rs").write_text('fn main() { print!("tried") }')
    assert run(checkouts[0] / "setup" / "cargo", "build", "--release", "--quiet", **environment) == (0, "")
    assert run(cache / "bin" / "mm-name") == (0, "older")


def test_what_is_unknown_is_refused_with_what_there_is_before_anything_is_done(checkout: Checkout) -> None:
    checkout.add_optional_step("servers", "caddy")
    status, said = checkout.setup(optional=["servers/apache"])
    assert status == 1
    assert said == "eyelevel: there is nothing to set up for servers/apache; there are servers/caddy\n"
    assert not checkout.acted


def test_a_failed_step_is_told_in_one_line_and_the_next_setup_goes_on_from_it(checkout: Checkout) -> None:
    errors = "echo 'SSL: certificate verify failed'; echo 'ERROR: no such package'"
    checkout.add_step("2-second", f"echo something broke; {errors}; ls /nonexistent; echo never printed")
    checkout.add_step("3-third")
    status, said = checkout.setup()
    log = checkout.cache / "log" / "2-second.log"
    assert status == 1
    failed = "[2/3] the second step failed (SSL: certificate verify failed): look for second."
    assert f"eyelevel: {failed} Its log is {log};" in said.splitlines()[-1]
    assert "something broke" in said
    assert "something broke" in log.read_text()
    assert "never printed" not in said
    assert checkout.acted == ["packages", "second"]
    checkout.add_step("2-second")
    assert checkout.setup()[0] == 0
    assert checkout.acted == ["packages", "second", "second", "third"]


def test_a_step_that_makes_nothing_has_failed(checkout: Checkout) -> None:
    checkout.add_step("2-second", "exit 0")
    assert checkout.setup()[0] == 1


def interrupted(process: "subprocess.Popen[str]") -> str:
    """Interrupt a set-up as a person does, again and again until it ends; returns its output.

    bash ignores an interrupt if the program that it waits for ends by itself at that moment.
    """
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)
    return process.communicate()[0]


def test_an_interrupted_setup_goes_on_where_it_was(checkout: Checkout, tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    os.mkfifo(reached)
    checkout.add_step("2-second", f"echo reached >{reached}; read -r _ <{reached}")
    with checkout.setting_up() as process:
        reached.read_text()
        assert "stopped" in interrupted(process)
        assert process.returncode == -signal.SIGINT
    checkout.add_step("2-second")
    assert checkout.setup()[0] == 0
    assert checkout.acted == ["packages", "second", "second"]


def test_a_step_is_prepared_while_another_one_acts(checkout: Checkout, tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    os.mkfifo(prepared)
    checkout.add_step("2-second", f"read -r _ <{prepared}")
    checkout.add_step("3-third", further=f"prepare() {{ echo preparing third; echo prepared >{prepared}; }}")
    assert checkout.setup()[0] == 0
    assert checkout.acted == ["packages", "second", "third"]
    assert (checkout.cache / "log" / "3-third.prepare.log").read_text() == "preparing third\n"
    assert checkout.setup() == (0, "")


def test_a_step_that_could_not_be_prepared_is_made_in_its_turn(checkout: Checkout) -> None:
    checkout.add_step("3-third", further="prepare() { exit 1; }")
    assert checkout.setup()[0] == 0
    assert checkout.acted == ["packages", "second", "third"]


def test_an_interrupted_setup_ends_what_it_prepares(checkout: Checkout, tmp_path: Path) -> None:
    reached, never = tmp_path / "reached", tmp_path / "never"
    for fifo in (reached, never):
        os.mkfifo(fifo)
    checkout.add_step("2-second", f"read -r _ <{never}")
    checkout.add_step("3-third", further=f"prepare() {{ sleep 600 & echo $! >{reached}; wait; }}")
    with checkout.setting_up() as process:
        sleeper = int(reached.read_text())
        assert "stopped" in interrupted(process)
    assert still_there([sleeper]) == []


def test_a_setup_interrupted_between_two_steps_says_so(checkout: Checkout, tmp_path: Path) -> None:
    never = tmp_path / "never"
    os.mkfifo(never)
    checkout.add_step("2-second", f"read -r _ <{never}")
    for _ in range(10):  # each at another moment: with a trap for INT, bash 5.2 reported a syntax error at most of them
        with checkout.setting_up() as process:
            assert process.stdout
            while "done in" not in process.stdout.readline():
                pass
            said = interrupted(process)
        assert process.returncode == -signal.SIGINT
        assert "stopped" in said
        assert "unexpected" not in said
        shutil.rmtree(checkout.cache / "stamps")


def test_a_setup_says_how_long_the_other_steps_take(checkout: Checkout) -> None:
    checkout.add_step("3-third", further="takes=290")
    checkout.add_step("4-fourth", further="takes=11")
    _, said = checkout.setup()
    lines = [line for line in said.splitlines() if "done in" in line]
    assert ["about 6 min left" in line for line in lines] == [True, True, False, False]
    assert "about 1 min left" in lines[2] and "left" not in lines[3]


def test_of_two_setups_at_once_one_waits_for_the_other(checkout: Checkout, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    os.mkfifo(go_on)
    checkout.add_step("2-second", f'read -r _ <"{go_on}"')
    with checkout.setting_up() as first, go_on.open("w") as gate, checkout.setting_up() as second:
        assert second.stdout
        assert "waiting" in second.stdout.readline()
        gate.write("go on\n")
        gate.flush()
        assert first.communicate() and first.returncode == 0
        assert second.communicate()[0] == "" and second.returncode == 0
    assert checkout.acted == ["packages", "second"]


@pytest.mark.slow
def test_what_a_program_uses_is_neither_renewed_nor_removed_but_more_can_be_added(checkout: Checkout) -> None:
    checkout.setup()
    using = "from base.places import use_cache; use_cache(); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", using],
        cwd=PROJECT,
        env={**os.environ, "EYELEVEL_CACHE": str(checkout.cache)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as user:
        assert user.stdout and user.stdout.readline()
        assert checkout.setup() == (0, "")
        (checkout.cache / "second").unlink()
        assert checkout.setup()[0] == 0
        assert checkout.acted == ["packages", "second", "second"]
        (checkout.folder / "inputs").write_text("changed")
        for refusal in (checkout.setup(), run(checkout.folder / "setup/clean", EYELEVEL_CACHE=str(checkout.cache))):
            assert refusal[0] == 1 and refusal[1].count("\n") == 1
            assert f"{checkout.cache}, which process {user.pid} ({sys.executable} -c " in refusal[1]
        assert checkout.acted == ["packages", "second", "second"]
        user.communicate(b"\n")
    assert checkout.setup()[0] == 0
    assert checkout.acted == ["packages", "second", "second", "packages", "second"]


@pytest.mark.slow
def test_no_program_and_no_session_of_tests_starts_while_a_setup_renews_what_it_uses(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.setup()
    (checkout.folder / "inputs").write_text("changed")
    reached = tmp_path / "reached"
    os.mkfifo(reached)
    checkout.add_step("2-second", f"echo reached >{reached}; read -r _ <{reached}")
    with checkout.setting_up():
        reached.read_text()
        for module, argument in (("eyelevel", "--version"), ("pytest", "tests/setup/test_checks.py")):
            status, said = run(sys.executable, "-m", module, argument, EYELEVEL_CACHE=str(checkout.cache))
            assert status != 0
            assert f"a set-up is renewing {checkout.cache}; wait until it ends" in said


@pytest.mark.needs_user_namespaces
@pytest.mark.parametrize(("sudo", "message"), [(None, "sudo is not installed"), ("exit 1", "sudo refused")])
def test_without_root_a_missing_package_is_told_in_one_line_before_anything_is_done(
    checkout: Checkout, tmp_path: Path, sudo: str | None, message: str
) -> None:
    (checkout.folder / "missing").write_text("nginx 1.*\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("bash", "env", "dirname", "realpath", "cat", "sha256sum", "basename", "unshare", "id", "true"):
        (programs / program).symlink_to(shutil.which(program) or program)
    if sudo:
        (programs / "sudo").write_text(f"#!/bin/bash\n[[ $1 != --* ]] || shift\n{sudo}\n")
        (programs / "sudo").chmod(0o755)
    status, said = checkout.setup(*AS_ORDINARY_USER, PATH=str(programs))
    assert status == 1
    assert message in said
    assert "missing here: nginx; installing them needs root" in said
    assert len(said.splitlines()) == 1
    assert not checkout.cache.exists()


@pytest.mark.needs_user_namespaces
def test_with_all_packages_there_a_setup_needs_no_root(checkout: Checkout) -> None:
    status, said = checkout.setup(*AS_ORDINARY_USER)
    assert (status, checkout.acted) == (0, ["packages", "second"]), said


@pytest.mark.needs_user_namespaces
def test_without_root_a_setup_tells_once_which_command_grants_what_the_kernel_withholds(
    checkout: Checkout, tmp_path: Path
) -> None:
    """The command is one line, whether sudo is missing or would ask for a password; nobody waits for a password."""
    shutil.copy(PROJECT / "setup" / "steps" / "0-permissions.sh", checkout.folder / "setup" / "steps")
    machine = tmp_path / "machine"
    (machine / "dev" / "net").mkdir(parents=True)
    (machine / "proc" / "sys" / "kernel").mkdir(parents=True)
    (machine / "proc" / "sys" / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sudo").write_text("#!/bin/sh\nexit 1\n")  # a working one would grant everything to this machine
    (programs / "sudo").chmod(0o755)
    environment = {"EYELEVEL_GRANT_ROOT": str(machine), "PATH": f"{programs}:/usr/bin:/bin"}
    status, said = checkout.setup(*AS_ORDINARY_USER, **environment)
    assert status == 0, said
    (note,) = [line for line in said.splitlines() if "sudo" in line]
    assert re.search(r"sudo refused \S+ \(it has no terminal here to ask for a password\)", note)
    assert f"an administrator can: sudo {checkout.folder}/setup/grant tun apparmor" in note
    assert checkout.setup(*AS_ORDINARY_USER, **environment) == (0, "")
    shutil.rmtree(checkout.cache / "stamps")
    status, said = checkout.setup(*AS_ORDINARY_USER, **environment, container="oci")
    assert (
        status == 0 and "not granted here: tun apparmor" in said and "a container has what it is started with" in said
    )


@pytest.mark.needs_namespaces
def test_an_unknown_system_is_told_which_are_known(checkout: Checkout, tmp_path: Path) -> None:
    step = (PROJECT / "setup" / "steps" / "1-packages.sh").read_text()
    overriding = "present() { false; }\nact() { echo packages >>acted; }\n"
    (checkout.folder / "setup" / "steps" / "1-packages.sh").write_text(step + overriding)
    (tmp_path / "os-release").write_text("ID=plan9\nVERSION_ID=4\n")
    script = f'mount --bind {tmp_path}/os-release "$(realpath /etc/os-release)" && exec "$@"'
    status, said = checkout.setup(*namespaced("mount"), "bash", "-c", script, "-")
    assert status == 1
    assert re.fullmatch(r"eyelevel: .*plan9-4.* debian-12 debian-13 ubuntu-24.04 .*\n", said)
    assert checkout.acted == []


def test_clean_removes_only_a_cache_that_setup_made(tmp_path: Path) -> None:
    clean = PROJECT / "setup" / "clean"
    (tmp_path / "precious").touch()
    status, said = run(clean, EYELEVEL_CACHE=str(tmp_path))
    assert status == 1
    assert "nothing was removed" in said
    assert (tmp_path / "precious").exists()


def test_lock_files_pin_content_and_name_no_host() -> None:
    requirements = (PROJECT / "requirements.txt").read_text()
    pinned = re.findall(r"^[\w.-]+(?=.*)", requirements, re.MULTILINE)
    assert pinned
    assert len(pinned) == len(re.findall(r"^[\w.-]+==\S+ \\\n    --hash=sha256:", requirements, re.MULTILINE))
    for lock in (requirements, (PROJECT / "package-lock.json").read_text()):
        assert "--index-url" not in lock
        assert '"resolved"' not in lock


def test_every_package_has_a_version_for_every_system() -> None:
    rows = [line.split(maxsplit=4) for line in (PROJECT / "setup" / "packages.txt").read_text().splitlines()]
    rows = [row for row in rows if len(row) > 1 and row[0] != "#"]  # without the names of groups
    assert rows[0] == ["package", "debian-12", "debian-13", "ubuntu-24.04", "for"]
    assert [row for row in rows if len(row) != len(rows[0])] == []


def test_the_packages_of_a_group_are_the_lines_below_its_name_without_those_that_the_system_does_not_need() -> None:
    system = "debian-13"
    packages = f"system_name() {{ echo {system}; }}; packages_of"
    for group, expected in (
        ("rust", "rustc 1.85.*\ncargo 1.85.*\n"),
        ("caddy", "caddy 2.6.2-*\n"),
        ("firefox", "firefox-esr *\n"),
        ("none", ""),
    ):
        assert run("bash", "-c", f". setup/common.sh; {packages} {group}") == (0, expected)


def test_a_process_that_outlives_its_test_is_found() -> None:
    mark = f"{leaks.MARK}=a session of this test's"
    environment = {**os.environ, leaks.MARK: "a session of this test's"}
    with subprocess.Popen(["sleep", "60"], env=environment) as process:
        descriptions = leaks.processes_marked(mark, timeout_s=0.1)
        process.kill()
    assert [description.partition(" ")[0] for description in descriptions] == [str(process.pid)]
    assert leaks.processes_marked(mark) == []
