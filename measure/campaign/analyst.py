"""Analysing a film while another run is being made: in a process of its own.

A thread would share Python with the thread that samples processors meanwhile (`measure.instruments.processor`). That
gives Python away at each question to the kernel, some sixty in a sample, and where films have several cores a busy
thread on another one takes it, for 5 ms each time: the samples would be of later times than they say.
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
    """Do what `method.analyse` does with the run in `folder`, on the cores of this thread. Raises what that raises."""
    command, environment = python_process(__name__)
    done = subprocess.run(
        command,
        input=pickle.dumps((method, folder)),
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # a terminal's Ctrl-C is not for it
        check=False,
    )
    if done.returncode:
        raise EyelevelError(f"the analysis of {folder} has ended with status {done.returncode}; its errors are above")
    if fault := pickle.loads(done.stdout):
        raise fault


def main() -> None:
    """Analyse what standard input names; what is raised goes to standard output."""
    method, folder = pickle.load(sys.stdin.buffer)
    fault = None
    try:
        method.analyse(folder)
    except (EyelevelError, OSError) as error:
        fault = portable(error)
    pickle.dump(fault, sys.stdout.buffer)


if __name__ == "__main__":
    main()
