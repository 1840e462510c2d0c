"""The rules that conftest.py enforces in every test session."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.needs import NEEDS
from support.processes import still_there
from support.turns import LONGEST, VARIABLE, Turns

from base.places import PROJECT

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent


def command_of(folder: Path, *options: str | Path) -> list[str | Path]:
    """The command line that runs the tests in `folder`, with this project's configuration and conftest.py."""
    command: list[str | Path] = [sys.executable, "-m", "pytest", "-c", PROJECT / "pyproject.toml", "-p", "conftest"]
    return [*command, "--rootdir", folder, f"--basetemp={folder / 'temporary'}", *options]


def environment_with(**variables: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{PROJECT}:{TESTS}", **variables}


def session(
    folder: Path, files: dict[str, str], *options: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests in `files`, names and texts, in a new session."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return subprocess.run(
        command_of(folder, *options, *(folder / name for name in files)),
        env=environment_with(**environment),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


HANGING = """
import subprocess, time
import pytest

def test_that_waits_for_a_child():
    with subprocess.Popen(["sleep", "1000"]) as child:
        print("started", child.pid)
        child.wait()

@pytest.fixture
def thing():
    yield
    time.sleep(1000)

def test_that_fails_and_whose_fixture_waits(thing):
    assert False
"""


def test_a_test_that_hangs_fails_and_what_it_left_is_reported_and_ended(tmp_path: Path) -> None:
    done = session(tmp_path, {"test_it.py": HANGING}, "-p", "no:randomly", "--timeout=5", EYELEVEL_TEST_AGAIN_S="1")
    assert done.returncode == 1
    assert "2 failed, 1 error" in done.stdout
    pid = int(done.stdout.partition("started ")[2].split()[0])
    assert f"process {pid} (sleep 1000 )" in done.stdout
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]


INTERRUPTED = """
import signal, subprocess

def test_a_child_can_be_interrupted():
    with subprocess.Popen(["sleep", "1000"]) as child:
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == -signal.SIGINT
"""


IN_NO_FOLDER = """
import os

def test_that_acts_in_no_folder_of_the_user():
    assert not {"EYELEVEL_FOLDER", "EYELEVEL_TUNING"} & {*os.environ}
"""


SKIPPING = """
import pytest

@pytest.mark.needs_corpus
@pytest.mark.parametrize("number", range(3))
def test_that_needs_it(number):
    pass
"""

FAILING_ONCE = """
import pytest
from pathlib import Path

{mark}
def test_that_fails_at_first():
    first = not (been := Path(__file__ + ".been")).exists()
    been.touch()
    assert not first
"""

TIMED = """
import time
import pytest

{mark}
@pytest.mark.parametrize("number", range(4))
def test_that_notes_when_it_ran(number):
    begin = time.monotonic()
    time.sleep(0.1)
    print("interval", "{mark}", begin, time.monotonic())
"""
TIMING_MARK, *LANES = [
    "@pytest.mark.timing",
    *(f"@pytest.mark.loads(group='g',lane={lane})" for lane in range(2)),
]
MIXED = {
    "test_interrupted.py": INTERRUPTED,
    "test_in_no_folder.py": IN_NO_FOLDER,
    "test_skipping.py": SKIPPING,
    "test_timing.py": FAILING_ONCE.format(mark=TIMING_MARK),
    "test_other.py": FAILING_ONCE.format(mark=""),
    "test_a.py": TIMED.format(mark=TIMING_MARK),
    "test_b.py": TIMED.format(mark=LANES[0]),
    "test_c.py": TIMED.format(mark=LANES[1]),
    "test_d.py": TIMED.format(mark=TIMING_MARK),
}


@pytest.fixture(scope="module", params=[[], ["-n", "3"]], ids=["one by one", "side by side"])
def output_lines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The output of a session with all kinds of tests. A script that ignores SIGINT starts it, in a user's folder."""
    folder = tmp_path_factory.mktemp("mixed")
    variables = dict.fromkeys(("EYELEVEL_CORPUS", "EYELEVEL_FOLDER", "EYELEVEL_TUNING"), str(folder))
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which children inherit
    try:
        done = session(folder, MIXED, "-rpP", *request.param, **variables)
    finally:
        signal.signal(signal.SIGINT, previous)
    return done.stdout.splitlines()


def test_children_of_tests_can_be_interrupted_where_a_script_ignores_sigint(output_lines: list[str]) -> None:
    passed = [line for line in output_lines if line.startswith("PASSED ")]
    assert [line for line in passed if line.endswith("test_interrupted.py::test_a_child_can_be_interrupted")], (
        output_lines
    )


def test_what_is_skipped_is_counted_with_how_to_get_it(output_lines: list[str]) -> None:
    (corpus,) = (need for need in NEEDS if need.name == "corpus")
    assert f"skipped: 3 {corpus.reason}" in output_lines
    assert "EYELEVEL_CORPUS=" in corpus.reason


def test_a_timing_test_may_fail_once_and_is_named_and_no_other_may(output_lines: list[str]) -> None:
    # 16 that note when they ran, the one that interrupts its child, the one in no folder, and the retried one pass.
    assert "1 failed, 19 passed, 3 skipped, 1 rerun" in output_lines[-1], output_lines
    at = output_lines.index("retried: 1 timing tests")
    assert output_lines[at + 1] == "retried: test_timing.py::test_that_fails_at_first: assert not True"


def test_timing_tests_run_after_all_others_and_beside_none(output_lines: list[str]) -> None:
    lines = [line.split()[1:] for line in output_lines if line.startswith("interval ")]
    intervals = sorted((float(begin), float(end), mark) for mark, begin, end in lines)
    assert [mark for _, _, mark in intervals[-8:]] == [TIMING_MARK] * 8, output_lines
    assert {mark for _, _, mark in intervals[:-8]} == {*LANES}
    ends = [end for _, end, _ in intervals]
    assert all(begin >= max(ends[: 8 + number]) for number, (begin, _, _) in enumerate(intervals[-8:]))


def test_every_need_is_a_mark_that_says_how_to_get_it(pytestconfig: pytest.Config) -> None:
    marks = pytestconfig.getini("markers")
    for need in NEEDS:
        assert f"{need.mark}: needs {need.noun} ({need.remedy})" in marks


def test_the_longest_files_are_there() -> None:
    names = {path.name for path in TESTS.rglob("test_*.py")}
    assert [name for name in LONGEST if name not in names] == []


ALONE = """
import sys
from pathlib import Path
from support.turns import Turns
turns = Turns(Path(sys.argv[1]))
turns.take(alone=True)
print("alone", flush=True)
sys.stdin.read()
"""


def test_sessions_of_all_checkouts_wait_for_a_timing_test_and_tests_of_one_for_nobody(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-c", ALONE, str(tmp_path)], environment_with(**{VARIABLE: str(tmp_path)})
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "alone\n"
        with (tmp_path / "eyelevel-tests-machine").open() as machine:
            with pytest.raises(BlockingIOError):
                fcntl.flock(machine, fcntl.LOCK_SH | fcntl.LOCK_NB)
            process.communicate()
            fcntl.flock(machine, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path))
        for turns in Turns(tmp_path), Turns(tmp_path):
            turns.take(alone=False)


@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["one by one", "side by side"])
def test_a_folder_of_locks_that_does_not_exist_is_an_error_in_one_line(tmp_path: Path, options: list[str]) -> None:
    missing = tmp_path / "missing"
    done = session(tmp_path, {}, *options, tmp_path, **{VARIABLE: str(missing)})
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    line = f"ERROR: {VARIABLE} names {missing}, which is no folder; create it, or unset {VARIABLE}"
    assert done.stderr.split("\n") == [line, "", ""] and done.stdout == ""


STARTING = """
import os, signal, subprocess, tempfile

def test_that_is_interrupted():
    stays = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    open(tempfile.mkstemp()[1]).close()
    with open(os.environ["TEST_PIPE"], "w") as pipe:
        print(stays.pid, tempfile.gettempdir(), file=pipe)
    signal.pause()
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["one by one", "side by side"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_session_that_is_interrupted_or_killed_leaves_nothing_behind(
    tmp_path: Path, options: list[str], how: signal.Signals
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    (tmp_path / "test_it.py").write_text(STARTING)
    with subprocess.Popen(
        command_of(tmp_path, *options, tmp_path / "test_it.py"),
        env=environment_with(TEST_PIPE=str(pipe)),
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as controller:
        pid, folder = pipe.read_text().split()
        guards = [child for child in psutil.Process(controller.pid).children() if "support.leaks" in child.cmdline()]
        # A terminal sends Ctrl-C to all processes; the kernel's out-of-memory killer picks one.
        os.killpg(controller.pid, how) if how == signal.SIGINT else controller.kill()
        controller.wait()
    _, remaining = psutil.wait_procs(guards)
    assert len(guards) == 1 and remaining == []
    assert still_there([int(pid)]) == []
    assert not Path(folder).parent.exists()
