"""Child processes that end with the block that started them."""

import os
import select
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from base.errors import EyelevelError
from base.places import PROJECT, tool

GRACE_S = 5.0

# A jailed program may replace its log by a link or a pipe: do not follow the link, do not wait for the pipe.
LOG_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK
# How many bytes at the end of a log are searched for its last line.
LOG_TAIL_BYTES = 1 << 16


def pinned(cores: Collection[int]) -> list[str | Path]:
    """The start of a command line that runs on `cores` only; empty when there are none."""
    return [tool("taskset"), "--cpu-list", ",".join(str(core) for core in sorted(cores))] if cores else []


def python_process(module: str, *arguments: str) -> tuple[list[str | Path], dict[str, str]]:
    """The command line and environment of a Python process that runs `module`, and that the kernel ends with the thread
    that starts it."""
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return [tool("setpriv"), "--pdeathsig", "KILL", sys.executable, "-m", module, *arguments], environment


def interruptible(command: Sequence[str | Path]) -> list[str | Path]:
    """The command line that runs `command` with the default action for SIGINT.

    Otherwise it may ignore SIGINT: jobs that a script starts in the background do, and so do all processes that they
    start.
    """
    return [tool("env"), "--default-signal=INT", *command]


def run_program(command: Sequence[str | Path], fault: str, text: str | None = None) -> None:
    """Run `command` to its end, with `text` as its input. Raises EyelevelError with `fault` if it fails."""
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if completed.returncode:
        raise EyelevelError(f"{fault}: {completed.stderr.strip()}")


def last_line_of(output: str, otherwise: str = "it printed nothing") -> str:
    """The last line of what a program printed."""
    return (output.strip().splitlines() or [otherwise])[-1]


def leave(status: int) -> NoReturn:
    """End this process with `status`, without the 20 ms that Python needs to clear its memory."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


class Daemon:
    """A running server process and the file that contains its output."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log

    def failure(self) -> EyelevelError:
        """The error to raise when it did not start or ended early, with the last line of its log."""
        status = self.process.poll()
        how = "does not answer" if status is None else f"ended with status {status}"
        return EyelevelError(f"{self.name} {how}: {last_line_of(_log_text(self.log), 'its log is empty')}")

    def first_line(self) -> str:
        """The first line that the process prints to its standard output, which must be a pipe; the next line when
        called again.

        Raises EyelevelError when the process ends without printing one.
        """
        assert self.process.stdout
        if not (line := self.process.stdout.readline()):
            self.process.wait()
            raise self.failure()
        return line.decode().strip()


def _log_text(log: Path) -> str:
    """The end of a log, or the reason why it cannot be read."""
    try:
        descriptor = os.open(log, LOG_FLAGS | os.O_RDONLY)
    except OSError as error:
        return f"{log}: {error.strerror}"
    with os.fdopen(descriptor, "rb") as file:
        details = os.fstat(descriptor)
        if not stat.S_ISREG(details.st_mode):
            return f"{log} is not a regular file"
        file.seek(max(0, details.st_size - LOG_TAIL_BYTES))
        return file.read(LOG_TAIL_BYTES).decode(errors="replace")


@contextmanager
def pidfd(process: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> Iterator[int]:
    """A descriptor that becomes readable when `process` has ended."""
    descriptor = os.pidfd_open(process.pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def first_readable(*descriptors: int, timeout_s: float | None = None) -> int | None:
    """The first of `descriptors`, in this order, that is readable or at its end; None if none is within `timeout_s`."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    ready = {descriptor for descriptor, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)}
    return next((descriptor for descriptor in descriptors if descriptor in ready), None)


@contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    stdout: int | None = None,
) -> Iterator[Daemon]:
    """Run `command` for the duration of the block; its output is appended to `log` unless `stdout` says otherwise.

    Raises EyelevelError when the process ends before the block does.
    """
    with os.fdopen(os.open(log, LOG_FLAGS | os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666), "ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output if stdout is None else stdout,
            stderr=output,
            env=environment,
            pass_fds=pass_fds,
            start_new_session=True,  # so that Ctrl-C on the terminal does not reach it
        )
    daemon = Daemon(name, process, log)
    with stopped_at_the_end(process):
        yield daemon
        if process.poll() is not None:
            raise daemon.failure()


@contextmanager
def stopped_at_the_end(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Stop `process` when the block ends, gracefully if possible."""
    try:
        yield process
    finally:
        process.terminate()
        end_within(process, GRACE_S)
        if process.stdout:
            process.stdout.close()


def end_within(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Wait until `process` ends, and kill it when it does not within `limit_s`."""
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
