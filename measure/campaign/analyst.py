"""Analyses a film in a process of its own while another run is being made.

A thread would share Python's interpreter lock with the thread that samples the processors meanwhile
(`measure.instruments.processor`). The sampling thread releases the lock at each system call, about sixty times per
sample. If films have several cores, a busy thread on another core then takes the lock for 5 ms each time, and samples
would be later than their timestamps.
"""

import pickle
import subprocess
import sys
from pathlib import Path

from base.errors import EyelevelError
from base.portable import portable
from base.processes import python_process
from measure.campaign.method import Method


def analyse_apart(method: Method, folder: Path) -> None:
    """Call `method.analyse` for the run in `folder`, in a process on this thread's cores. Raises what `analyse`
    raises."""
    command, environment = python_process(__name__)
    done = subprocess.run(
        command,
        input=pickle.dumps((method, folder)),
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # protects it from a terminal's Ctrl-C
        check=False,
    )
    if done.returncode:
        raise EyelevelError(f"the analysis of {folder} has ended with status {done.returncode}; its errors are above")
    if fault := pickle.loads(done.stdout):
        raise fault


def main() -> None:
    """Read a method and a folder from standard input, and analyse; an error goes to standard output."""
    method, folder = pickle.load(sys.stdin.buffer)
    fault = None
    try:
        method.analyse(folder)
    except (EyelevelError, OSError) as error:
        fault = portable(error)
    pickle.dump(fault, sys.stdout.buffer)


if __name__ == "__main__":
    main()
