"""`python -m benchmarks.rootless`: round trips and page loads measured as an ordinary user, compared with root."""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import pandas as pd

from analysis.statistics.intervals import Estimate, over_runs
from base.errors import EyelevelError, reports_errors
from base.places import PROJECT, ca_certificate, cache_dir, tool
from base.processes import last_line_of
from benchmarks.shells.measure import deviations
from servers.certificates import KEY

ROOT, PRIORITY, PLAIN = "root", "user with real-time priority", "user"
# The limits of real-time priority (limits.conf(5)); `setup/grant priority` sets the first.
RTPRIO = {PRIORITY: 1, PLAIN: 0}
PROTOCOLS = ("tcp+", "quic")
METRICS = ("plt", "si")
# If both ends of this interval are within the margin, two one-sided tests at 5 % show equivalence (Schuirmann 1987).
CONFIDENCE = 0.90
MARGIN_PERCENT = 2.0
LIMIT_S = 600


def measure(condition: str, user_id: int, *task: str) -> dict[str, Any]:
    """The worker's output for `task`, run by root or by the user without any capability. Raises EyelevelError."""
    command = [sys.executable, "-m", "benchmarks.rootless.worker", *task]
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as home:
        environment = {**os.environ, "HOME": home, "TMPDIR": home, "EYELEVEL_CACHE": str(cache_dir())}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if condition != ROOT:
            os.chown(home, user_id, user_id)
            priority = RTPRIO[condition]
            limits = [str(tool("prlimit")), f"--rtprio={priority}:{priority}"]
            command = [*limits, *as_user(user_id), *command]
        try:
            completed = subprocess.run(
                command,
                cwd=PROJECT,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise EyelevelError(f"{condition}: {' '.join(task)} took longer than {LIMIT_S} s") from None
    if completed.returncode:
        raise EyelevelError(f"{condition}: {last_line_of(completed.stderr)}")
    answer: dict[str, Any] = json.loads(last_line_of(completed.stdout))
    return answer


@cache
def conditions() -> tuple[str, ...]:
    """The conditions: who measures. Root of a container may be unable to give a user real-time priority; this condition
    is then left out."""
    trial = [str(tool("prlimit")), f"--rtprio={RTPRIO[PRIORITY]}:{RTPRIO[PRIORITY]}", str(tool("true"))]
    if subprocess.run(trial, stderr=subprocess.DEVNULL, check=False).returncode:
        click.echo(f"left out: {PRIORITY}, whose limit this system does not let root raise (CAP_SYS_RESOURCE)")
        return ROOT, PLAIN
    return ROOT, PRIORITY, PLAIN


def as_user(user_id: int) -> list[str]:
    """The start of a command line that runs as this user, without any capability."""
    return [str(tool("setpriv")), f"--reuid={user_id}", f"--regid={user_id}", "--clear-groups", "--inh-caps=-all"]


def require_access(user_id: int) -> None:
    """Raise EyelevelError when the user cannot access root's cache with its keys, or this checkout."""
    for path in (ca_certificate().with_name(KEY), Path(sys.executable), PROJECT / "benchmarks"):
        trial = subprocess.run([*as_user(user_id), str(tool("test")), "-r", path], check=False)
        if trial.returncode:
            raise EyelevelError(
                f"user {user_id} may not read {path}; run 'make setup' as that user, with EYELEVEL_CACHE and a "
                "checkout outside of root's home, and then this from there"
            )


def in_turn(turn: int) -> Sequence[str]:
    """The conditions in the order of this turn, rotated so that each comes first in turn."""
    first = turn % len(conditions())
    return (*conditions()[first:], *conditions()[:first])


def round_trips(user_id: int, delay_ms: float, turns: int, count: int) -> pd.DataFrame:
    """The errors of round trips through `mm-net` (ms): a row for each condition, over `turns` networks each."""
    times_ms: dict[str, list[float]] = {condition: [] for condition in conditions()}
    timekeeping: dict[str, str] = {}
    for turn in range(turns):
        for condition in in_turn(turn):
            answer = measure(condition, user_id, "round-trips", str(delay_ms), str(count))
            times_ms[condition] += answer["ms"]
            timekeeping[condition] = answer["timekeeping"]
    rows = {}
    for condition in conditions():
        off = deviations([time_ms - 2 * delay_ms for time_ms in times_ms[condition]])
        rows[condition] = {
            "keeps time with": timekeeping[condition],
            "round trips": off.count,
            "median off by ms": off.median_ms,
            "p99 ms": off.p99_ms,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def load_times(user_id: int, site: str, network: str, loads: int) -> pd.DataFrame:
    """Page load times and Speed Indices (ms): a row for each turn, columns (protocol, condition, metric)."""
    rows = []
    for turn in range(loads):
        row: dict[tuple[str, str, str], float] = {}
        for protocol in PROTOCOLS:
            for condition in in_turn(turn):
                answer = measure(condition, user_id, "load", site, network, protocol)
                row |= {(protocol, condition, metric): answer[metric] for metric in METRICS}
        rows.append(row)
        click.echo(f"turn {turn + 1} of {loads}: " + ", ".join(f"{row[p, ROOT, 'plt']:.0f} ms" for p in PROTOCOLS))
    return pd.DataFrame(rows)


def differences(times: pd.DataFrame) -> pd.DataFrame:
    """The differences of each user's times from root's in the same turn, in percent, with intervals."""
    rows = []
    for protocol in PROTOCOLS:
        for metric in METRICS:
            root = times[protocol, ROOT, metric]
            for condition in conditions()[1:]:
                ratios = times[protocol, condition, metric] / root
                difference = over_runs(ratios.map(math.log), CONFIDENCE)
                labels = {"protocol": protocol, "metric": metric.upper(), "measured by": condition}
                rows.append({**labels, "root's mean ms": root.mean(), **percentages(difference)})
    return pd.DataFrame(rows)


def percentages(difference: Estimate) -> Mapping[str, object]:
    """A mean log ratio with its interval, as columns in percent."""
    mean, low, high = (100 * math.expm1(value) for value in (difference.mean, difference.low, difference.high))
    within = low > -MARGIN_PERCENT and high < MARGIN_PERCENT
    verdict = f"within {MARGIN_PERCENT:g} %" if within else "not shown to be equivalent"
    return {"%": mean, "low": low, "high": high, "": verdict}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--user-id", required=True, type=click.IntRange(min=1), help="The ordinary user, by number.")
@click.option("--delay-ms", default=20.0, show_default=True, help="The delay for round trips, one way.")
@click.option("--turns", default=6, show_default=True, help="Networks for round trips, for each condition.")
@click.option("--count", default=300, show_default=True, help="Round trips through each.")
@click.option("--site", default="demo-news", show_default=True, help="A recorded site.")
@click.option("--net", default="lte", show_default=True, help="The network of the loads.")
@click.option("--loads", default=30, show_default=True, help="Loads for each protocol and condition.")
def main(user_id: int, delay_ms: float, turns: int, count: int, site: str, net: str, loads: int) -> None:
    """Print how far off round trips and page loads are when an ordinary user measures them, compared with root's.

    Run it as root, in a checkout and with a cache (EYELEVEL_CACHE) that are the user's.

    Example: python -m benchmarks.rootless --user-id 1000
    """
    if os.geteuid() != 0:
        raise EyelevelError("only root can measure as root and as another user; run it as root")
    require_access(user_id)
    trips = round_trips(user_id, delay_ms, turns, count)
    click.echo(f"mm-net --delay {delay_ms:g}\n{trips.to_string(float_format='%.3f')}\n")
    table = differences(load_times(user_id, site, net, loads))
    click.echo(f"\n{site} on {net}, {loads} loads each, {CONFIDENCE:.0%} intervals")
    click.echo(table.to_string(index=False, float_format="%.1f"))


if __name__ == "__main__":
    reports_errors(main)()
