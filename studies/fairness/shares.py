"""How flows shared a link: rates over time, shares of all received bytes, and Jain's index.

R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
Computer Systems. DEC TR-301, 1984: (sum of x)² / (n sum of x²), 1 if all n get the same, 1/n if one gets everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics.intervals import over_runs
from dataset.table import require_document, valid_rows
from measure.instruments.cross_traffic import read_series
from studies.fairness.defaults import UNSETTLED_S
from studies.fairness.mixes import mix_named
from tuning.networks import Network

# The width of a bin in the figure over time.
BIN_S = 0.5
COLUMNS = ["network", "mix", "protocol", "run", "share", "relative", "jain", "used"]
SUMMARY = ["network", "mix", "protocol", "runs", "share", "share_low", "share_high", "relative", "jain", "used"]


@dataclass(frozen=True)
class RunRates:
    """The rates (Mbit/s) of a run's flows in bins of `BIN_S`, one row per flow; the flows under test come first."""

    network: str
    mix: tuple[int, int]
    protocol: str
    run: int
    mbps: NDArray[np.float64]

    @property
    def settled(self) -> NDArray[np.float64]:
        """The mean rate of each flow, without the unsettled beginning."""
        settled = self.mbps[:, round(UNSETTLED_S / BIN_S) :]
        return np.asarray((settled if settled.size else self.mbps).mean(axis=1))

    @property
    def share(self) -> float:
        """The share of the flows under test in all received bytes."""
        settled = self.settled
        return float(settled[: self.mix[0]].sum() / settled.sum()) if settled.sum() else float("nan")


def rates(samples: Sequence[Sequence[tuple[float, int]]]) -> NDArray[np.float64]:
    """The rates (Mbit/s) of flows in bins of `BIN_S`, one row per flow. `samples`: for each flow, times (s) and the
    bytes received until then."""
    began_s = max(flow[0][0] for flow in samples)
    ended_s = min(flow[-1][0] for flow in samples)
    edges = began_s + BIN_S * np.arange(int((ended_s - began_s) / BIN_S) + 1)
    came = [np.interp(edges, *np.array(flow, dtype=float).T) for flow in samples]
    return np.diff(np.array(came), axis=1) * 8 / BIN_S / 1e6


def jain(values: NDArray[np.float64]) -> float:
    """Jain's index of the flows' `values`; NaN if all are 0."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else float("nan")


def read_runs(folder: Path, study: str) -> list[RunRates]:
    """The runs that count in the campaign in `folder`. Raises EyelevelError."""
    runs = []
    for row in valid_rows(folder, study):
        mix, series = mix_named(row.site), read_series(folder / row.folder)
        if mix and len(series) == sum(mix):
            mbps = rates([series[number] for number in range(sum(mix))])
            runs.append(RunRates(row.network, mix, row.protocol, row.run, mbps))
    return runs


def link_mbps(folder: Path) -> dict[str, float | None]:
    """The rate of each network's downlink. Raises EyelevelError."""
    return {name: values.get("down_mbps") for name, values in require_document(folder).settings.networks.items()}


def table(runs: Sequence[RunRates], rate_mbps: dict[str, float | None]) -> pd.DataFrame:
    """A row for each run, with COLUMNS: `share` of the flows under test; `relative`, this share divided by the share
    that these flows would have if all flows got the same; Jain's index of all flows; and `used`, the share of the link
    that all flows used together."""
    rows = []
    for one in runs:
        count, others = one.mix
        mbps = rate_mbps.get(one.network)
        relative = one.share * (count + others) / count
        used = float(one.settled.sum()) / mbps if mbps else float("nan")
        mix = f"{count}x{others}"
        rows.append((one.network, mix, one.protocol, one.run, one.share, relative, jain(one.settled), used))
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(table: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """A row for each network, mix and protocol, with SUMMARY: means over runs; the share also has Student's
    interval."""
    rows = []
    for (network, mix, protocol), of_setting in table.groupby(["network", "mix", "protocol"], sort=False):
        share = over_runs(of_setting["share"].dropna(), confidence, (0, 1))
        means = (float(of_setting[name].mean()) for name in ("relative", "jain", "used"))
        rows.append((network, mix, protocol, len(of_setting), share.mean, share.low, share.high, *means))
    return pd.DataFrame(rows, columns=SUMMARY)


def queue_of(network: Network) -> tuple[str, float]:
    """The name of the queue of a network's downlink in a figure, and its place among other queues: by its length in
    bandwidth-delay products, managed queues last."""
    queue = network.queue_of("down")
    if queue is None or network.down_mbps is None:
        return "none", 0.0
    if queue.kind not in ("droptail", "drophead"):
        return queue.kind + (" ecn" if queue.ecn else ""), float("inf")
    size_bytes = queue.length_bytes(network.down_mbps, network.min_rtt_ms)
    product_bytes = network.down_mbps * 1e3 / 8 * network.min_rtt_ms
    length = size_bytes / product_bytes if size_bytes and product_bytes else float("inf")
    return f"{length:.3g} BDP", length
