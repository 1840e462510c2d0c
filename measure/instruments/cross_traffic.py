"""The background flows of a run, read from its folder: the bytes of each over time, and the replay's account of
them."""

import csv
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset.columns import Column
from dataset.run_files import CROSS_TRAFFIC_SAMPLES
from measure.instruments.contract import FinishedRun, Instrument, Readings


@dataclass(frozen=True)
class CrossTrafficFlow:
    """A background flow of a run: its name, its direction, its sender's congestion control, the bytes received in the
    whole run and while the page loaded, and the mean rate (Mbit/s) while the page loaded. The last two are None if the
    page did not load."""

    name: str
    direction: str
    congestion_control: str
    run_bytes: int
    load_bytes: int | None = None
    load_mbps: float | None = None


def read_series(folder: Path) -> dict[int, list[tuple[float, int]]]:
    """Number of a flow in `folder` → pairs of a time (s since 1970) and the bytes received by then; empty without
    flows."""
    series: dict[int, list[tuple[float, int]]] = {}
    if (folder / CROSS_TRAFFIC_SAMPLES).exists():
        # Ignore an incomplete last line: the program that writes it may have been stopped.
        lines, _, _ = (folder / CROSS_TRAFFIC_SAMPLES).read_text().rpartition("\n")
        for row in csv.DictReader(lines.splitlines(), delimiter="\t"):
            series.setdefault(int(row["flow"]), []).append((float(row["at_s"]), int(row["bytes"])))
    return series


def read_cross_traffic(
    folder: Path, account: Mapping[str, Any], load_s: tuple[float, float] | None
) -> tuple[CrossTrafficFlow, ...]:
    """The background flows of the run in `folder`, by the `account` of its replay; the page loaded in `load_s`
    (beginning and end, s since 1970)."""
    series = read_series(folder)
    flows = []
    for number, said in enumerate(account.get("cross_traffic", {}).get("flows", ())):
        samples = series.get(number, [])
        load_bytes = None if load_s is None else bytes_at(samples, load_s[1]) - bytes_at(samples, load_s[0])
        mbps = None if load_s is None or load_bytes is None else load_bytes * 8 / (load_s[1] - load_s[0]) / 1e6
        control = said["congestion_control"]
        flows.append(CrossTrafficFlow(said["name"], said["direction"], control, said["bytes"], load_bytes, mbps))
    return tuple(flows)


def bytes_at(samples: list[tuple[float, int]], at_s: float) -> int:
    """The bytes of a flow received by `at_s`, interpolated linearly between samples."""
    place = bisect_right(samples, at_s, key=lambda sample: sample[0])
    if place == 0 or place == len(samples):
        return samples[place - 1][1] if place else 0
    (before_s, before), (after_s, after) = samples[place - 1 : place + 1]
    return round(before + (after - before) * (at_s - before_s) / (after_s - before_s))


def load_mbps(flows: tuple[CrossTrafficFlow, ...]) -> float | None:
    """The mean rate of all background flows together while the page loaded; None without flows."""
    rates = [flow.load_mbps for flow in flows if flow.load_mbps is not None]
    return round(sum(rates), 4) if rates else None


COLUMN = "cross_traffic_mbps"


class CrossTraffic(Instrument):
    """Reads the samples that the replay takes of background flows (`replay.cross_traffic`)."""

    name = "cross_traffic"
    columns = (
        Column(
            COLUMN,
            "Mbit/s",
            "mean rate of all [background flows](networks.md#background-flows) together at their receivers, from the "
            "start of the navigation to the load event or the last visual change; empty where the network has none",
        ),
    )

    def read(self, run: FinishedRun) -> Readings:
        """The mean rate of all flows together while the page loaded."""
        return {COLUMN: load_mbps(read_cross_traffic(run.folder, run.account, run.load_s))}


INSTRUMENT = CrossTraffic()
