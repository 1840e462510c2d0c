"""What conftest.py promises of every session of tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.needs import NEEDS

from base.places import PROJECT

TESTS = Path(__file__).parent


def session(folder: Path, text: str, *options: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the tests in `text` under the configuration and the conftest.py of this project."""
    (folder / "test_it.py").write_text(text)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        PROJECT / "pyproject.toml",
        "--rootdir",
        folder,
        "-p",
        "conftest",
    ]
    command.append(f"--basetemp={folder / 'temporary'}")
    return subprocess.run(
        [*command, *options, folder / "test_it.py"],
        env=os.environ | {"PYTHONPATH": f"{PROJECT}:{TESTS}", **environment},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
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


@pytest.mark.slow
def test_a_test_that_hangs_fails_and_what_it_left_is_reported_and_ended(tmp_path: Path) -> None:
    done = session(tmp_path, HANGING, "--timeout=1", EYELEVEL_TEST_AGAIN_S="1")
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
        assert child.wait(5) == -signal.SIGINT
"""


def test_children_of_tests_can_be_interrupted_where_a_script_ignores_sigint(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which children inherit
    try:
        done = session(tmp_path, INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert "1 passed" in done.stdout, done.stdout


SKIPPING = """
import pytest

@pytest.mark.needs_corpus
@pytest.mark.parametrize("number", range(3))
def test_that_needs_it(number):
    pass
"""


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "side by side"])
def test_what_is_skipped_is_counted_with_how_to_get_it(tmp_path: Path, options: list[str]) -> None:
    done = session(tmp_path, SKIPPING, *options, EYELEVEL_CORPUS=str(tmp_path))
    (corpus,) = (need for need in NEEDS if need.name == "corpus")
    assert f"skipped: 3 {corpus.reason}" in done.stdout.splitlines()
    assert "EYELEVEL_CORPUS=" in corpus.reason


def test_every_need_is_a_mark_that_says_how_to_get_it(tmp_path: Path) -> None:
    marks = session(tmp_path, "", "--markers").stdout
    for need in NEEDS:
        assert f"@pytest.mark.{need.mark}: needs {need.noun} ({need.remedy})" in marks


TIMED = """
import time
from pathlib import Path
import pytest

{mark}
@pytest.mark.parametrize("number", range(4))
def test_that_notes_when_it_ran(number):
    begin = time.monotonic()
    Path(__file__ + ".begun").touch()
    if number == 0 and "{partner}":
        while not Path(__file__).with_name("{partner}.begun").exists():
            time.sleep(0.01)
    time.sleep({seconds})
    print("interval", "{mark}", begin, time.monotonic())
"""


@pytest.mark.slow
def test_tests_run_beside_none_but_those_that_their_marks_allow(tmp_path: Path) -> None:
    alone, one, other = "@pytest.mark.alone", *(f"@pytest.mark.loads(group='g',lane={lane})" for lane in range(2))
    waiting = "@pytest.mark.waits"
    files = [
        ("test_a.py", alone, "", 0.1),
        ("test_b.py", one, "", 0.3),
        ("test_c.py", other, "", 0.1),
        ("test_d.py", one, "", 0.3),
        ("test_e.py", waiting, "test_f.py", 0.1),
        ("test_f.py", waiting, "test_e.py", 0.1),
    ]
    for name, mark, partner, seconds in files:
        (tmp_path / name).write_text(TIMED.format(mark=mark, partner=partner, seconds=seconds))
    # Two workers: a third would want the machine alone, and have it before the second that waits, if that came later.
    done = session(tmp_path, "", "-n", "2", "-rP", tmp_path)
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("interval ")]
    intervals = sorted((float(begin), float(end), mark) for mark, begin, end in lines)
    assert len(intervals) == 24, done.stdout
    overlapping = [
        {earlier[2], later[2]}
        for number, earlier in enumerate(intervals)
        for later in intervals[number + 1 :]
        if later[0] < earlier[1]
    ]
    assert {waiting} in overlapping and {one, other} in overlapping
    assert [marks for marks in overlapping if marks not in ({one, other}, {waiting})] == []
