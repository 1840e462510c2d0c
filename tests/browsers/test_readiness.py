"""A navigation begins when the browser is idle: how the testbed finds out that it is."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from base.jail import Jail, jailed
from base.namespaces import namespaced
from base.places import tool
from browsers.browsertime.run import SCRIPTS

IDLE = SCRIPTS / "idle.mjs"

# Waits until the other processes are idle, and prints one line about the wait.
UNTIL_IDLE = f"""
import {{ Threads, untilIdle }} from "{IDLE}";
const [apart, limit, proc] = process.argv.slice(1);
const limits = {{ window_ms: 100, used_ms: 2, limit_ms: Number(limit) }};
console.log(JSON.stringify(await untilIdle(new Threads([apart], proc), limits)));
"""


def answer(script: str, *arguments: str | Path, around: tuple[str | Path, ...] = ()) -> Any:
    """The JSON that a script of Node prints; `around` is a command that runs it."""
    command = [*around, tool("node"), "--input-type=module", "--eval", script, *arguments]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def beside(others: str, *arguments: str, readable: tuple[Path, ...] = ()) -> Any:
    """The answer in a jail in which the shell's command `others` also runs."""
    jail = Jail(readable=(SCRIPTS, tool("node"), *readable))
    script = f'{others} & exec "$@"'
    around = (*namespaced("mount"), *jailed(jail, ["sh", "-c", script, "sh"]))
    return answer(UNTIL_IDLE, *arguments, around=around)


@pytest.mark.needs_namespaces
def test_processes_that_sleep_are_idle() -> None:
    said = beside("sleep 1000", "film-recorder", "20000")
    assert said["is_idle"] and said["used_ms"] < 2
    assert 100 <= said["waited_ms"] < 20000


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(
    "others",
    [
        pytest.param("while :; do :; done", id="one that computes"),
        pytest.param("while :; do sleep 0.01; done", id="one that starts others again and again"),
    ],
)
def test_processes_that_work_are_waited_for_no_longer_than_the_limit(others: str) -> None:
    said = beside(others, "film-recorder", "400")
    assert not said["is_idle"]
    assert said["waited_ms"] >= 400


@pytest.mark.needs_namespaces
def test_the_film_may_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    film = tmp_path / "film-program"
    shutil.copy(shutil.which("dash") or "/bin/sh", film)
    busy = f"{film} -c 'while :; do :; done'"
    assert beside(busy, film.name, "20000", readable=(film,))["is_idle"]
    assert not beside(busy, "another", "400", readable=(film,))["is_idle"]


def thread(proc: Path, number: int, account: str, state: str = "S") -> Path:
    """The folder of a process with one thread, in the kernel's format."""
    folder = proc / str(number) / "task" / str(number)
    folder.mkdir(parents=True)
    (proc / str(number) / "comm").write_text("chromium\n")
    (folder / "schedstat").write_text(f"{account} 7\n")
    (folder / "stat").write_text(f"{number} (a) R (b) {state} 1 1\n")
    return folder


def test_nothing_is_idle_where_the_kernel_keeps_no_account(tmp_path: Path) -> None:
    thread(tmp_path, 5, "0 0")
    said = answer(UNTIL_IDLE, "film-recorder", "300", tmp_path)
    assert said["is_idle"] is False and said["used_ms"] is None


@pytest.mark.parametrize(("state", "is_idle"), [("S", True), ("R", False), ("D", False)])
def test_who_waits_for_a_processor_or_a_disk_is_not_idle(tmp_path: Path, state: str, is_idle: bool) -> None:
    thread(tmp_path, 5, "90000000 1000000", state)
    assert answer(UNTIL_IDLE, "film-recorder", "300", tmp_path)["is_idle"] is is_idle
