"""The paper's Table 3: QUIC's lead on sites of one server, beyond what its shorter handshake gives it.

QUIC's first request leaves after one round trip, that of TCP with TLS 1.3 after two. On a site with one server the
handshake gives no more than that, so the table has compared - (reference - one round trip).
"""

from typing import Any

import pandas as pd
from numpy.typing import NDArray

from analysis.findings import Findings
from analysis.networks import path_rtt_ms
from analysis.statistics.contrasts import difference_interval
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Pair
from analysis.statistics.samples import Array, counts

# The paper's.
PAIRS = (Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr"))
METRICS = ("fvc", "plt")
COLUMNS = ["reference", "compared", "network", "site", "metric", "rtt_ms", "runs_reference", "runs_compared"]
COLUMNS += ["delta_ms", "delta_low", "delta_high", "round_trips"]


def handshake_table(findings: Findings) -> pd.DataFrame:
    """A row for each of PAIRS, network, single-server site and metric of METRICS that were measured.

    Columns: reference, compared, network, site, metric, rtt_ms (the network's minimum round-trip time), runs_reference,
    runs_compared, delta_ms with delta_low and delta_high (Welch's interval), round_trips (delta_ms in round trips).
    """

    def statistics(_: Pair, reference: Array, compared: Array) -> dict[str, NDArray[Any]]:
        low, high = difference_interval(reference, compared, findings.hypotheses.confidence)
        return {
            "runs_reference": counts(reference),
            "runs_compared": counts(compared),
            "delta_ms": mean(compared) - mean(reference),
            "delta_low": low,
            "delta_high": high,
        }

    samples, sites = findings.samples, findings["sites"]
    table = samples.compare([pair for pair in PAIRS if pair.is_of(samples.protocols)], statistics, COLUMNS)
    table = table[table["site"].isin(sites.loc[sites["servers"] == 1, "site"]) & table["metric"].isin(METRICS)]
    rtt_ms = {name: path_rtt_ms(network) for name, network in findings.campaign.settings.networks.items()}
    table = table.assign(rtt_ms=table["network"].map(rtt_ms).astype(float))
    for name in ("delta_ms", "delta_low", "delta_high"):
        table[name] += table["rtt_ms"]
    table["round_trips"] = table["delta_ms"] / table["rtt_ms"]
    return table[COLUMNS].reset_index(drop=True)
