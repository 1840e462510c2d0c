"""A navigation begins when the browser is idle and the film has frames of orange: how both are detected."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from base.jail import Jail, jailed
from base.namespaces import namespaced
from base.places import tool
from browsers.browsertime.configuration import FILM_PROGRESS
from browsers.browsertime.run import SCRIPTS, pinned_ffmpeg
from tuning.defaults import FRAMERATE

IDLE = SCRIPTS / "idle.mjs"
FILM_FRAMES = SCRIPTS / "film_frames.mjs"

# Waits until the other processes are idle, and prints one line about the wait.
UNTIL_IDLE = f"""
import {{ Threads, untilIdle }} from "{IDLE}";
const [apart, limit, proc] = process.argv.slice(1);
const limits = {{ window_ms: 100, used_ms: 2, limit_ms: Number(limit) }};
console.log(JSON.stringify(await untilIdle(new Threads([apart], proc), limits)));
"""
UNTIL_FILMED = f"""
import {{ untilFilmed }} from "{FILM_FRAMES}";
const [progress, frames, limit] = process.argv.slice(1);
console.log(JSON.stringify(await untilFilmed(progress, {{ frames: Number(frames), limit_ms: Number(limit) }})));
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
    said = beside("sleep 1000", "ffmpeg", "20000")
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
    said = beside(others, "ffmpeg", "400")
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
    said = answer(UNTIL_IDLE, "ffmpeg", "300", tmp_path)
    assert said["is_idle"] is False and said["used_ms"] is None


@pytest.mark.parametrize(("state", "is_idle"), [("S", True), ("R", False), ("D", False)])
def test_who_waits_for_a_processor_or_a_disk_is_not_idle(tmp_path: Path, state: str, is_idle: bool) -> None:
    thread(tmp_path, 5, "90000000 1000000", state)
    assert answer(UNTIL_IDLE, "ffmpeg", "300", tmp_path)["is_idle"] is is_idle


def test_the_frames_of_a_film_are_known_at_its_own_pace(tmp_path: Path) -> None:
    picture = ["-re", "-f", "lavfi", "-i", f"color=orange:size=64x64:rate={FRAMERATE}", "-f", "null", "-"]
    with subprocess.Popen(
        [pinned_ffmpeg(tmp_path, ()) / "ffmpeg", *picture], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as film:
        assert film.stderr and film.stdin
        # Browsertime recognises by this line that the film has begun.
        assert any(b"Press [q] to stop" in line for line in film.stderr)
        said = answer(UNTIL_FILMED, tmp_path / FILM_PROGRESS, "4", "20000")
        film.communicate(b"q")
    assert said["frames"] >= 4 and said["waited_ms"] < 20000
    # By default FFmpeg reports it every half second, which is 15 frames.
    frames = [int(number) for number in re.findall(r"frame=(\d+)", (tmp_path / FILM_PROGRESS).read_text())]
    assert len(frames) > max(frames) / 3


def test_a_film_has_its_rate_though_its_first_frames_came_at_another(tmp_path: Path) -> None:
    """The first frames of a busy machine are like this, and FFmpeg derives the rate of its output from them."""
    film = tmp_path / "a film.mp4"
    grabbed = [
        "-y",
        "-f",
        "lavfi",
        "-i",
        f"color=orange:size=64x64:rate={FRAMERATE + 26}:duration=2",
        "-codec:v",
        "libx264rgb",
    ]
    subprocess.run([pinned_ffmpeg(tmp_path, ()) / "ffmpeg", *grabbed, film], check=True, capture_output=True)
    probe: list[str | Path] = [tool("ffprobe"), "-v", "error", "-of", "csv=p=0"]
    probe += ["-show_entries", "stream=r_frame_rate", film]
    done = subprocess.run(probe, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == f"{FRAMERATE}/1"


def test_a_film_that_has_no_frames_is_waited_for_no_longer_than_the_limit(tmp_path: Path) -> None:
    progress = tmp_path / FILM_PROGRESS
    progress.write_text("frame=2\nprogress=continue\n")
    said = answer(UNTIL_FILMED, progress, "3", "200")
    assert said["frames"] == 0
    assert said["waited_ms"] >= 200


def test_without_a_film_nothing_is_waited_for(tmp_path: Path) -> None:
    assert answer(UNTIL_FILMED, tmp_path / FILM_PROGRESS, "3", "20000") is None
