"""`python -m benchmarks.record`: how fast recordings are imported, and how fast replays of them start.

Each number comes with a lower bound, measured in the same run on the same bytes. The second part needs root, as replays
do.
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
IMPORT_TARGET_S = 5.0

FAST = Network("fast", up_mbps=1000, down_mbps=1000, min_rtt_ms=0, loss=0, queue_ms=100)


@dataclass(frozen=True)
class Size:
    """A site whose replays are started, and the targets for time and memory."""

    servers: int
    exchanges: int
    start_target_s: float
    memory_target_mb: float


SINGLE_SERVER = Size(1, 4, 3.0, 150.0)
# A site with as many servers as any site in the paper has, and a site larger than any page needs.
MANY_SERVERS = (Size(76, 4 * 76, 3.0, 150.0), Size(150, 3000, 1.0, 150.0))


@dataclass(frozen=True)
class Comparison:
    """A time, and the time of a peer that does only the necessary part of the work; medians in seconds."""

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
    """Measure imports of 1,000 exchanges, and the start and memory of replays with many servers."""
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
            show("Starting a replay", starts)
            show_memory(memory)
            numbers |= {"starts": [asdict(row) for row in starts], "memory": memory}
        else:
            click.echo("Replays need root; their start was not measured.")
    if json_path:
        json_path.write_text(json.dumps(numbers, indent=1) + "\n")


def measure_imports(folder: Path, repeats: int) -> list[Comparison]:
    """The import of each format, compared with copying the same files, and with reading them by the format's own
    library."""
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
    """Import `source` as `make import` does."""
    site = write_site(read_recording(source), folder)
    if len(site.exchanges) != EXCHANGES:
        raise EyelevelError(
            f"{source}: {len(site.exchanges)} of {EXCHANGES} exchanges were imported: {site.skipped[:1]}"
        )


def copy(source: Path, destination: Path) -> None:
    """Copy the same bytes, synchronised to disk in the same way."""
    shutil.rmtree(destination, ignore_errors=True)
    subprocess.run(["cp", "-r", source, destination], check=True)
    subprocess.run(["sync", "-f", destination], check=True)
    if destination.is_file():
        destination.unlink()


def iterate(archive: Path) -> None:
    """Read everything in a WARC with warcio."""
    with archive.open("rb") as stream:
        for record in ArchiveIterator(stream):
            record.raw_stream.read()


def parse(archive: Path) -> None:
    """Read everything in a file with a JSON parser."""
    json.loads(archive.read_bytes())


def measure_starts(folder: Path, repeats: int) -> tuple[list[Comparison], list[dict[str, Any]]]:
    """The start of replays with many servers and with one, and of NGINX alone; and the memory of the servers, by
    program."""
    sites = {
        size: material.site_of(size.exchanges, size.servers, folder / str(size.servers))
        for size in (SINGLE_SERVER, *MANY_SERVERS)
    }
    nginx_s = median_s(nginx_alone, repeats)
    rows, memory = [], []
    for protocol in ("tcp", "quic"):
        times_s: dict[Size, float] = {}
        for size, site in sites.items():
            starts = [start(site, protocol) for _ in range(repeats)]
            times_s[size] = statistics.median(time_s for time_s, _ in starts)
            memory += [use_of(protocol, size, site, program, use) for program, use in starts[-1][1].items()]
        for size in MANY_SERVERS:
            subject, time_s = f"{protocol}, {size.servers} servers", times_s[size]
            rows.append(Comparison(subject, time_s, "one server", times_s[SINGLE_SERVER], size.start_target_s))
            rows.append(Comparison(subject, time_s, "nginx, once, by itself", nginx_s, size.start_target_s))
    return rows, memory


def use_of(protocol: str, size: Size, site: Site, program: str, use: dict[str, float]) -> dict[str, Any]:
    """A row of the table of memory, for one program of a replay."""
    bodies_mb = sum(exchange.bytes for exchange in site.exchanges) / 1e6
    known = {"protocol": protocol, "servers": size.servers, "exchanges": size.exchanges, "bodies_mb": bodies_mb}
    return {**known, "target_mb": size.memory_target_mb, "program": program, **use}


def start(site: Site, protocol: str) -> tuple[float, dict[str, dict[str, float]]]:
    """Seconds from the start of a replay until its client may begin, and the memory of the servers at that moment."""
    spec = ReplaySpec(site.folder, FAST, protocols.load()[protocol])
    with tempfile.TemporaryFile() as output:
        outcome = run(spec, [sys.executable, "-m", "benchmarks.record.servers_memory"], stdout=output.fileno())
        output.seek(0)
        memory: dict[str, dict[str, float]] = json.load(output)
    return float(outcome.evidence["setup_s"]), memory


def nginx_alone() -> None:
    """Start NGINX with an empty configuration, until it has forked into the background."""
    with tempfile.TemporaryDirectory(prefix="nginx-") as folder:
        config, pid = Path(folder) / "nginx.conf", Path(folder) / "pid"
        config.write_text(f"pid {pid}; error_log {folder}/log; events {{}}")
        try:
            subprocess.run([tool("nginx"), "-p", folder, "-c", config], check=True)
        finally:  # in the background it would outlive this process
            subprocess.run([tool("nginx"), "-p", folder, "-c", config, "-s", "stop"], check=True)


def median_s(action: Callable[[], object], repeats: int) -> float:
    """The median duration of `repeats` times `action`."""
    # timeit would otherwise switch off garbage collection.
    return statistics.median(timeit.repeat(action, gc.enable, number=1, repeat=repeats))


def show(title: str, comparisons: list[Comparison]) -> None:
    """Print a table of times, next to those of their peers and the target."""
    table = pd.DataFrame(comparisons)
    table["ratio"] = table["time_s"] / table["peer_s"]
    table["target"] = (table["time_s"] < table["target_s"]).map({True: "met", False: "missed"})
    table = table.set_index(["subject", "peer"])
    click.echo(f"\n{title}\n{table.to_string(float_format='%.2f')}")


def show_memory(uses: list[dict[str, Any]]) -> None:
    """Print a table of the servers' memory, next to the size of the bodies that they hold and the target."""
    replay = ["protocol", "servers", "exchanges", "bodies_mb"]
    table = pd.DataFrame(uses)
    programs = table.set_index([*replay, "program"])[["processes", "pss_mb"]]
    whole = table.groupby(replay, sort=False).agg({"processes": "sum", "pss_mb": "sum", "target_mb": "first"})
    whole["target"] = (whole["pss_mb"] <= whole["target_mb"]).map({True: "met", False: "missed"})
    click.echo(f"\nMemory of the servers (sum of proportional set sizes)\n{programs.to_string(float_format='%.1f')}")
    click.echo(f"\n{whole.to_string(float_format='%.1f')}")


if __name__ == "__main__":
    main()
