"""`python -m benchmarks.record`: how fast recordings are imported, and how fast replays of them start.

Beside each number is a lower bound, measured in the same run on the same bytes. The second part needs root, as
replays do.
"""

import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import pandas as pd
from warcio.archiveiterator import ArchiveIterator

from base.errors import EyelevelError, reports_errors
from base.places import tool
from benchmarks.record import material
from record.formats import read_recording
from record.site import Site, write_site
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

EXCHANGES = 1000
SERVERS = 76  # of the site that the paper names as the one with most
EXCHANGES_A_SERVER = 4
IMPORT_TARGET_S, START_TARGET_S = 5.0, 3.0

FAST = Network("fast", up_mbps=1000, down_mbps=1000, min_rtt_ms=0, loss=0, queue_ms=100)


@dataclass(frozen=True)
class Comparison:
    """A time, and that of a peer that does only the necessary part of the work; medians in seconds."""

    subject: str
    time_s: float
    peer: str
    peer_s: float
    target_s: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--repeats", default=3, show_default=True, help="How often each is measured; the medians are printed.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file.")
@reports_errors
def main(repeats: int, json_path: Path | None) -> None:
    """Measure imports of 1,000 exchanges, and the start of replays with 76 servers."""
    load = os.getloadavg()[0]
    click.echo(
        f"load average {load:.1f} on {os.cpu_count()} cores; times count only on a machine that does nothing else"
    )
    with tempfile.TemporaryDirectory(prefix="benchmark-") as temporary:
        folder = Path(temporary)
        imports = measure_imports(folder, repeats)
        show(f"Importing {EXCHANGES} exchanges", imports)
        numbers: dict[str, Any] = {"load_before": load, "imports": [asdict(row) for row in imports]}
        if os.geteuid() == 0:
            starts, memory = measure_starts(folder, repeats)
            show(f"Starting a replay of {SERVERS} servers", starts)
            show_memory(memory)
            numbers |= {"starts": [asdict(row) for row in starts], "memory": memory}
        else:
            click.echo("Replays need root; their start was not measured.")
    if json_path:
        json_path.write_text(json.dumps(numbers, indent=1) + "\n")


def measure_imports(folder: Path, repeats: int) -> list[Comparison]:
    """Each format, beside copying the same files, and beside what its own library needs to read it."""
    site = material.site_of(EXCHANGES, 20, folder / "site")
    rows = []
    for form, source in material.write_formats(site, folder).items():
        time_s = median_s(partial(import_again, source, folder / "imported"), repeats)
        peers: dict[str, Callable[[], object]] = {"cp": partial(copy, source, folder / "copied")}
        if form == "WARC":
            peers["warcio, reading alone"] = partial(iterate, source)
        if form == "HAR":
            peers["json, reading alone"] = partial(parse, source)
        rows += [
            Comparison(form, time_s, name, median_s(peer, repeats), IMPORT_TARGET_S) for name, peer in peers.items()
        ]
    return rows


def import_again(source: Path, folder: Path) -> None:
    """What `make import` does."""
    site = write_site(read_recording(source), folder)
    if len(site.exchanges) != EXCHANGES:
        raise EyelevelError(
            f"{source}: {len(site.exchanges)} of {EXCHANGES} exchanges were imported: {site.skipped[:1]}"
        )


def copy(source: Path, destination: Path) -> None:
    """The same bytes, as safely on disk."""
    shutil.rmtree(destination, ignore_errors=True)
    subprocess.run(["cp", "-r", source, destination], check=True)
    subprocess.run(["sync", "-f", destination], check=True)
    if destination.is_file():
        destination.unlink()


def iterate(archive: Path) -> None:
    """All that warcio gives."""
    with archive.open("rb") as stream:
        for record in ArchiveIterator(stream):
            record.raw_stream.read()


def parse(archive: Path) -> None:
    """All that a parser of JSON gives."""
    json.loads(archive.read_bytes())


def measure_starts(folder: Path, repeats: int) -> tuple[list[Comparison], dict[str, dict[str, Any]]]:
    """Replays of many servers and of one, and NGINX by itself; and the memory of the servers."""
    many = material.site_of(SERVERS * EXCHANGES_A_SERVER, SERVERS, folder / "many")
    one = material.site_of(EXCHANGES_A_SERVER, 1, folder / "one")
    nginx_s = median_s(nginx_alone, repeats)
    rows, memory = [], {}
    for protocol in ("tcp", "quic"):
        times_s: dict[str, float] = {}
        for name, site in (("many", many), ("one", one)):
            starts = [start(site, protocol) for _ in range(repeats)]
            times_s[name] = statistics.median(time_s for time_s, _ in starts)
            memory[f"{protocol}, {len(site.servers)} servers"] = starts[-1][1]
        rows.append(Comparison(protocol, times_s["many"], "one server", times_s["one"], START_TARGET_S))
        rows.append(Comparison(protocol, times_s["many"], "nginx, once, by itself", nginx_s, START_TARGET_S))
    return rows, memory


def start(site: Site, protocol: str) -> tuple[float, dict[str, Any]]:
    """Seconds from nothing to a client that may begin, and the memory of the servers then."""
    spec = ReplaySpec(site.folder, FAST, protocols.load()[protocol])
    with tempfile.TemporaryFile() as output:
        outcome = run(spec, [sys.executable, "-m", "benchmarks.record.servers_memory"], stdout=output.fileno())
        output.seek(0)
        memory: dict[str, Any] = json.load(output)
    return float(outcome.evidence["setup_s"]), memory


def nginx_alone() -> None:
    """NGINX with an empty configuration, until it has forked into the background."""
    with tempfile.TemporaryDirectory(prefix="nginx-") as folder:
        config, pid = Path(folder) / "nginx.conf", Path(folder) / "pid"
        config.write_text(f"pid {pid}; error_log {folder}/log; events {{}}")
        try:
            subprocess.run([tool("nginx"), "-p", folder, "-c", config], check=True)
        finally:  # in the background it outlives us, however we end
            subprocess.run([tool("nginx"), "-p", folder, "-c", config, "-s", "stop"], check=True)


def median_s(action: Callable[[], object], repeats: int) -> float:
    """The median duration of `repeats` times `action`."""
    # timeit would switch the garbage collection off.
    return statistics.median(timeit.repeat(action, gc.enable, number=1, repeat=repeats))


def show(title: str, comparisons: list[Comparison]) -> None:
    """A table of times beside their peers' and the target."""
    table = pd.DataFrame(comparisons)
    table["ratio"] = table["time_s"] / table["peer_s"]
    table["target"] = (table["time_s"] < table["target_s"]).map({True: "met", False: "missed"})
    table = table.set_index(["subject", "peer"])
    click.echo(f"\n{title}\n{table.to_string(float_format='%.2f')}")


def show_memory(memory: dict[str, dict[str, Any]]) -> None:
    """A table of what the servers take."""
    uses = {(replay, name): use for replay, programs in memory.items() for name, use in sorted(programs.items())}
    table = pd.DataFrame(uses).T.astype({"processes": int}).rename_axis(["replay", "program"])
    click.echo(f"\nMemory of the servers (sum of proportional set sizes)\n{table.to_string(float_format='%.1f')}")


if __name__ == "__main__":
    main()
