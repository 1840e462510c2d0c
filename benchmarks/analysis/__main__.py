"""`python -m benchmarks.analysis`: time and memory of the reports of simulated campaigns, compared with lower
bounds."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import pandas as pd
import psutil

from base.places import PROJECT
from benchmarks.memory import pss_bytes
from eyelevel.simulate import Truth, write

# The number of sites: the paper's 38, and fractions of it. Each site has the paper's 4 networks, 5 protocols and 31
# runs.
SITES = (1, 5, 10, 19, 38)
# For a sample of memory the kernel goes through all pages: with ten in a second, a report took a third longer. So the
# pause grows to this share of the time so far.
SAMPLE_S, SAMPLE_SHARE = 0.1, 0.05
# The lower bounds: reading a campaign's table, and drawing an empty page with a plotting library.
READ = "import sys, pandas; pandas.read_csv(sys.argv[1])"
DRAW = """
import sys
from matplotlib.figure import Figure
figure = Figure(figsize=(7, 5))
figure.savefig(sys.argv[1] + ".pdf")
figure.savefig(sys.argv[1] + ".png", dpi=160)
"""


def cost(command: list[str]) -> dict[str, float]:
    """Run `command` to its end; return the cost of it and of all processes that it started.

    The cost is wall-clock time, CPU time and peak memory (proportional set size). Raises CalledProcessError when the
    command fails.
    """
    started, used = time.monotonic(), _children_cpu_s()
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL) as process:
        root, most = psutil.Process(process.pid), 0
        while True:
            most = max(most, sum(map(pss_bytes, [root, *root.children(recursive=True)])))
            try:
                process.wait(max(SAMPLE_S, SAMPLE_SHARE * (time.monotonic() - started)))
                break
            except subprocess.TimeoutExpired:
                continue
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {"wall_s": time.monotonic() - started, "cpu_s": _children_cpu_s() - used, "memory_bytes": most}


def measure(sites: int, folder: Path) -> dict[str, Any]:
    """The costs for a simulated campaign of `sites`, which is written to `folder`.

    They are measured for the report, for pandas reading the same table, and for drawing an empty page.
    """
    truth = Truth(sites=sites, effects={"quic": -0.08, "quic+bbr": -0.08}, effect_sd=0.05, excluded={"quic": 0.01})
    campaign = write(folder / str(sites), truth)
    table = campaign / "runs.csv"
    report = cost([sys.executable, "-m", "eyelevel", "report", str(campaign)])
    return {
        "sites": sites,
        "runs": sum(1 for _ in table.open()) - 1,
        "csv_bytes": table.stat().st_size,
        "pages_bytes": sum(page.stat().st_size for page in (campaign / "report").glob("*.html")),
        "report": report,
        "read_csv": cost([sys.executable, "-c", READ, str(table)]),
        "empty_page": cost([sys.executable, "-c", DRAW, str(folder / "empty")]),
    }


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
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        results = [measure(count, Path(temporary)) for count in sites]
    table = pd.json_normalize(results)
    sizes = table.filter(like="bytes").columns
    table[sizes] /= 1e6
    click.echo(table.rename(columns=lambda name: name.replace("bytes", "MB")).round(1).to_string(index=False))
    if into:
        into.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
