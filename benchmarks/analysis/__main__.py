"""`python -m benchmarks.analysis`: time and memory of the report of simulated campaigns, beside what bounds them."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from analysis.simulate import Truth, write
from base.places import PROJECT

# The paper's number of sites, and fractions of it; each with its 4 networks, 5 protocols and 31 runs.
SITES = (1, 5, 10, 19, 38)
SAMPLE_S = 0.1
# The least that can be done with a campaign's table, and with a page of a plotting library.
READ = "import sys, pandas; pandas.read_csv(sys.argv[1])"
DRAW = """
import sys
from matplotlib.figure import Figure
figure = Figure(figsize=(7, 5))
figure.savefig(sys.argv[1] + ".pdf")
figure.savefig(sys.argv[1] + ".png", dpi=160)
"""


@dataclass(frozen=True)
class Cost:
    """Wall-clock and CPU seconds and most memory (proportional set size, bytes) of a command with all it started."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


@dataclass(frozen=True)
class Result:
    """The costs for one size of campaign: the report, pandas reading the same table, an empty page drawn."""

    sites: int
    runs: int
    csv_bytes: int
    page_bytes: int
    report: Cost
    read_csv: Cost
    empty_page: Cost


def cost(command: list[str]) -> Cost:
    """Run `command` to its end. Raises CalledProcessError when it fails."""
    started, used = time.monotonic(), _children_cpu_s()
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL) as process:
        most = 0
        while True:
            most = max(most, sum(_memory_bytes(pid) for pid in _tree(process.pid)))
            try:
                process.wait(SAMPLE_S)
                break
            except subprocess.TimeoutExpired:
                continue
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.monotonic() - started, _children_cpu_s() - used, most)


def measure(sites: int, folder: Path) -> Result:
    """The costs for a simulated campaign of `sites`, put into `folder`."""
    truth = Truth(sites=sites, effects={"quic": -0.08, "quic+bbr": -0.08}, effect_sd=0.05, excluded={"quic": 0.01})
    campaign = write(folder / str(sites), truth)
    table = campaign / "runs.csv"
    return Result(
        sites=sites,
        runs=sum(1 for _ in table.open()) - 1,
        csv_bytes=table.stat().st_size,
        report=cost([sys.executable, "-m", "eyelevel", "report", str(campaign)]),
        page_bytes=(campaign / "report" / "index.html").stat().st_size,
        read_csv=cost([sys.executable, "-c", READ, str(table)]),
        empty_page=cost([sys.executable, "-c", DRAW, str(folder / "empty")]),
    )


def _tree(pid: int) -> list[int]:
    """`pid` and all that it started, as far as they still run."""
    try:
        children = (Path(f"/proc/{pid}/task/{pid}/children").read_text()).split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _memory_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    return 0


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--sites", multiple=True, type=int, default=SITES, show_default=True, help="Sizes to measure.")
@click.option("--json", "into", type=click.Path(path_type=Path), help="Where to put the numbers as JSON.")
def main(sites: tuple[int, ...], into: Path | None) -> None:
    """Measure what reports cost.

    Example: python -m benchmarks.analysis --sites 5 --sites 38
    """
    table = Table("sites", "runs", "report s", "CPU s", "MB", "page MB", "read_csv s", "MB", "empty page s", "MB")
    results = []
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        for count in sites:
            one = measure(count, Path(temporary))
            results.append(asdict(one))
            cells = [f"{one.report.wall_s:.1f}", f"{one.report.cpu_s:.1f}", _mb(one.report.memory_bytes)]
            cells += [f"{one.page_bytes / 1e6:.1f}", f"{one.read_csv.wall_s:.1f}", _mb(one.read_csv.memory_bytes)]
            cells += [f"{one.empty_page.wall_s:.1f}", _mb(one.empty_page.memory_bytes)]
            table.add_row(str(one.sites), str(one.runs), *cells)
    Console().print(table)
    if into:
        into.write_text(json.dumps(results, indent=1) + "\n")


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f}"


if __name__ == "__main__":
    main()
