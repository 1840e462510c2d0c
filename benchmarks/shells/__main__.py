"""`python -m benchmarks.shells`: measure the shells, Rattan, a bare TUN copy loop and plain veth in one run.

Needs root and the baselines: `cargo build --release --examples` in shells/. Rattan is left out if it is not on the
PATH.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pandas as pd

from base.errors import EyelevelError, reports_errors
from benchmarks.shells import measure, systems
from benchmarks.shells.systems import System

DELAYS_MS = (0, 5, 20, 380)
INSIDE = "BENCHMARK_INSIDE"


@click.command()
@click.option("--seconds", default=6.0, show_default=True, help="Length of each bulk transfer.")
@click.option("--probes", default=300, show_default=True, help="Round trips per delay (a sixth at 380 ms).")
@click.option("--only", type=click.Choice(("round-trips", "transfers")), help="Leave the other half out.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the numbers to this file.")
@reports_errors
def main(seconds: float, probes: int, only: str | None, json_path: Path | None) -> None:
    """Compare the shells with other emulators, on an idle machine and with one busy loop per core."""
    if os.geteuid() != 0:
        raise EyelevelError("the benchmark makes network namespaces; run it as root")
    if INSIDE not in os.environ:
        enter_own_namespaces()
    click.echo(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} over the last minute")
    numbers: dict[str, Any] = {"load_before": os.getloadavg()[0], "cores": os.cpu_count()}
    veth = plain_veth()
    for busy in (False, True):
        title = "one busy loop per core" if busy else "idle"
        with busy_loops() if busy else contextlib.nullcontext():
            results = numbers[title] = {}
            if only != "transfers":
                results["round trips"] = show_round_trips(title, probes)
            if only != "round-trips":
                results["transfers"] = show_transfers(title, seconds, veth)
    if json_path is not None:
        json_path.write_text(json.dumps(numbers, indent=1) + "\n")


def show_round_trips(title: str, probes: int) -> dict[str, dict[str, Any]]:
    """Measure round-trip times of each delay through each emulator, and of a long packet through a slow link.

    They are shown with the machine's part of their deviation: how late the machine wakes a process that sleeps for the
    same time, and how long an undelayed packet takes after a pause of the same length.
    """
    title = f"Deviations of round trips, {title}, load {os.getloadavg()[0]:.1f}"
    numbers: dict[str, dict[str, Any]] = {}

    def add(name: str, wanted_ms: float, result: measure.Deviations) -> None:
        numbers[f"{name}, {wanted_ms:.3f} ms"] = asdict(result)

    def add_machine(wanted_ms: float, count: int, ip_bytes: int = 84) -> None:
        if wanted_ms > 0:
            add("one sleep of half as long", wanted_ms, measure.sleeps(wanted_ms / 2, count))
        bare = measure.round_trips(systems.tun_copy(), 0, count, wanted_ms + 5, ip_bytes)
        add("bare TUN copy, as far apart", wanted_ms, bare)

    for delay_ms in DELAYS_MS:
        count = probes if delay_ms < 100 else max(10, probes // 6)
        add_machine(2 * delay_ms, count)
        emulators = (
            systems.shell(f"mm-delay {delay_ms}"),
            systems.shell(f"mm-net --delay {delay_ms} --"),
            systems.rattan_delay(delay_ms),
        )
        for system in filter(None, emulators):
            add(system.name, 2 * delay_ms, measure.round_trips(system, 2 * delay_ms, count))
    both_ways_ms = 2 * 1500 * 8 / 468
    add_machine(both_ways_ms, probes, ip_bytes=1500)
    link = systems.shell("mm-link 0.468M 0.468M --")
    add(f"{link.name}, 1500 bytes", both_ways_ms, measure.round_trips(link, both_ways_ms, probes, ip_bytes=1500))
    show_table(title, pd.DataFrame.from_dict(numbers, orient="index"))
    return numbers


def show_transfers(title: str, seconds: float, veth: System) -> dict[str, dict[str, Any]]:
    """Measure bulk transfers through each emulator, as ratios to Rattan's if it is installed."""
    lte = "mm-delay 37 mm-link 2.8M 10.5M --queue 200ms -- mm-loss both 0 --"
    plan = [
        veth,
        systems.tun_copy(),
        systems.shell("mm-delay 0"),
        systems.rattan_delay(0),
        systems.shell("mm-delay 20"),
        systems.rattan_delay(20),
        systems.shell("mm-link 1G 1G --"),
        systems.shell("mm-loss both 0.00001 --"),
        systems.shell("mm-delay 20 mm-link 1G 1G -- mm-loss both 0 --"),
        systems.shell("mm-net --delay 20 --up 1G --down 1G --"),
        systems.shell(lte),
        systems.shell("mm-net --delay 37 --up 2.8M --down 10.5M --queue 200ms --"),
    ]
    numbers: dict[str, dict[str, Any]] = {}
    rattan_mbps: dict[tuple[str, str], float] = {}
    times_rattan: dict[str, float] = {}
    for system in sorted(filter(None, plan), key=lambda it: not it.name.startswith("rattan")):
        for flow in ("cubic", "bbr", "udp"):
            is_udp = flow == "udp"
            result = measure.udp(system, seconds / 3) if is_udp else measure.tcp(system, flow, seconds)
            numbers[f"{system.name}, {flow}"] = asdict(result)
            delay = system.name.split()[1]
            if system.name.startswith("rattan"):
                rattan_mbps[delay, flow] = result.mbps
            if system.name.startswith("mm-delay") and (delay, flow) in rattan_mbps:
                times_rattan[f"{system.name}, {flow}"] = result.mbps / rattan_mbps[delay, flow]
    table = pd.DataFrame.from_dict(numbers, orient="index")
    table["times Rattan"] = pd.Series(times_rattan, dtype=float)
    show_table(f"Bulk transfers, {title}", table)
    return numbers


def show_table(title: str, table: pd.DataFrame) -> None:
    """Print a table of measurements, one network per line."""
    click.echo(f"\n{title}\n{table.to_string(float_format='%.3f', na_rep='')}")


def enter_own_namespaces() -> None:
    """Restart this program in its own network and mount namespaces, with the server's address on lo."""
    script = f'mount -t tmpfs none /run && mkdir /run/netns && {measure.ADD_SERVER} && exec "$@"'
    again = (sys.executable, "-m", "benchmarks.shells", *sys.argv[1:])
    command = ("unshare", "--net", "--mount", "sh", "-c", script, "sh", *again)
    os.execvpe(command[0], command, os.environ | {INSIDE: "1"})


def plain_veth() -> System:
    """A namespace at the other end of a pair of Ethernet devices.

    Its name is in this process's own /run, and both end with the process.
    """
    script = """
        ip netns add veth
        ip link add near type veth peer name far netns veth
        ip address add 198.19.0.1/24 dev near && ip link set near up
        ip -n veth address add 198.19.0.2/24 dev far && ip -n veth link set far up
        ip -n veth route add default via 198.19.0.1
    """
    subprocess.run(("sh", "-e", "-c", script), check=True)
    return systems.veth("/run/netns/veth")


@contextlib.contextmanager
def busy_loops() -> Iterator[None]:
    """Keep every core busy with an ordinary process."""
    loops = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    main()
