"""`python -m benchmarks.start_up`: how long commands take to start, beside a Python that does nothing."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click

from analysis.simulate import Truth, write
from base.places import PROJECT
from eyelevel.program import COMMANDS

# As many attempts as a campaign of the paper's size has: 38 sites, 4 networks, 5 protocols, 31 runs.
SITES, RUNS = 38, 31
ERRORS = (
    ["nonsense"],
    ["campaign", "--nonsense"],
    ["report"],
    ["report", "nonsense"],
    ["campaign", "--net", "nonsense"],
)


def seconds(arguments: list[str]) -> float:
    """How long Python takes with these `arguments`."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=PROJECT, capture_output=True, check=False)
    return time.perf_counter() - begun


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="How often each is started.")
def main(rounds: int) -> None:
    """Print the median time of each command, and its ratio to that of a Python that does nothing; all take turns."""
    with tempfile.TemporaryDirectory(prefix="start-up-") as folder:
        write(Path(folder), Truth(SITES, runs=RUNS))
        helps = [[name, "--help"] for name in COMMANDS]
        lines = [["--help"], ["--version"], *ERRORS, ["status", folder], *helps]
        calls = {"python": ["-c", "pass"]} | {" ".join(line): ["-m", "eyelevel", *line] for line in lines}
        taken: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, arguments in calls.items():
                taken[name].append(seconds(arguments))
        for name, times in taken.items():
            click.echo(f"{1000 * median(times):6.0f} ms  {median(times) / median(taken['python']):5.1f} x  {name}")


if __name__ == "__main__":
    main()
