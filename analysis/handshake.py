"""The paper's Table 3: QUIC's lead on sites of one server, beyond what its shorter handshake gives it.

QUIC's first request leaves after one round trip, that of TCP with TLS 1.3 after two. On a site with one server the
handshake gives no more than that, so the table has compared - (reference - one round trip).
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict

import pandas as pd

from analysis.contrasts import difference_interval
from analysis.gain import mean
from analysis.hypotheses import Pair
from analysis.samples import Samples, counts

# The paper's.
PAIRS = (Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr"))
METRICS = ("fvc", "plt")


def handshake_table(
    samples: Samples, single_server_sites: Collection[str], rtt_ms: Mapping[str, float], confidence: float
) -> pd.DataFrame:
    """A row for each of PAIRS, network, single-server site and metric of METRICS that were measured.

    `rtt_ms` is each network's minimum round-trip time. Columns: reference, compared, network, site, metric,
    rtt_ms, runs_reference, runs_compared, delta_ms with delta_low and delta_high (Welch's interval), round_trips
    (delta_ms in round trips).
    """
    tables = []
    for pair in PAIRS:
        if not {pair.reference, pair.compared} <= set(samples.protocols):
            continue
        a, b = samples.of(pair.reference), samples.of(pair.compared)
        low, high = difference_interval(a, b, confidence)
        table = samples.frame(
            {
                **asdict(pair),
                "runs_reference": counts(a),
                "runs_compared": counts(b),
                "delta_ms": mean(b) - mean(a),
                "delta_low": low,
                "delta_high": high,
            }
        )
        tables.append(table[table["site"].isin(single_server_sites) & table["metric"].isin(METRICS)])
    columns = ["reference", "compared", "network", "site", "metric", "rtt_ms", "runs_reference", "runs_compared"]
    columns += ["delta_ms", "delta_low", "delta_high", "round_trips"]
    if not tables:
        return pd.DataFrame(columns=columns)
    result = pd.concat(tables, ignore_index=True).dropna(subset="delta_ms")
    result["rtt_ms"] = result["network"].map(rtt_ms).astype(float)
    for name in ("delta_ms", "delta_low", "delta_high"):
        result[name] += result["rtt_ms"]
    result["round_trips"] = result["delta_ms"] / result["rtt_ms"]
    return result[columns].reset_index(drop=True)
