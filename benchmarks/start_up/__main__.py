"""`python -m benchmarks.start_up`: how long commands take to answer, compared with a Python that does nothing."""

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import click

from base.places import PROJECT
from eyelevel.program import COMMANDS
from eyelevel.simulate import Truth, write

# The simulated campaign is of the paper's size: 38 sites, 4 networks, 5 protocols, 31 runs.
SITES, RUNS = 38, 31
ERRORS = (
    ["nonsense"],
    ["campaign", "--nonsense"],
    ["report"],
    ["report", "nonsense"],
    ["campaign", "--net", "nonsense"],
)
# Commands on a campaign for which the time to the first line is measured.
READING = ("report", "package", "compare")


def to_the_end(arguments: list[str]) -> float:
    """How long Python takes with these `arguments` (s)."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=PROJECT, capture_output=True, check=False)
    return time.perf_counter() - begun


def to_the_first_line(arguments: list[str]) -> float:
    """How long Python takes with these `arguments` until it prints anything (s); then it is ended."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        process.stdout.read(1)
        taken = time.perf_counter() - begun
        process.kill()
    return taken


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="How often each is started.")
def main(rounds: int) -> None:
    """Print the median time of each command, and its ratio to that of a Python that does nothing. The time of a slow
    command ends with its first line, that of any other with its end. All commands take turns."""
    with tempfile.TemporaryDirectory(prefix="start-up-") as folder:
        write(Path(folder), Truth(SITES, runs=RUNS))
        helps = [[name, "--help"] for name in COMMANDS]
        ends = [["--help"], ["--version"], *ERRORS, ["status", folder], *helps]
        beginnings = [["campaign", "--results", f"{folder}/results"], *([name, folder] for name in READING)]
        calls = {"python": partial(to_the_end, ["-c", "pass"])}
        calls |= {" ".join(line): partial(to_the_end, ["-m", "eyelevel", *line]) for line in ends}
        calls |= {
            f"first line: {' '.join(line)}": partial(to_the_first_line, ["-m", "eyelevel", *line])
            for line in beginnings
        }
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, seconds in calls.items():
                taken[name].append(seconds())
        for name, times in taken.items():
            click.echo(f"{1000 * median(times):6.0f} ms  {median(times) / median(taken['python']):5.1f} x  {name}")


if __name__ == "__main__":
    main()
