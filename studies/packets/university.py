"""The bytes of a connection, compared with those that the university study reports."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from studies.packets.bytes import PADDING
from studies.packets.dissection import PacketRecord

THEIRS = Path(__file__).with_name("university.csv")
# The university study's quantities of a connection → the columns of `studies.packets.runs` with ours. The study's
# other quantities are kinds of headers.
OF_CONNECTION = {"handshake": "handshake_bytes", "connection": "bytes", "padding": PADDING}
COLUMNS = ["site", "protocol", "quantity", "theirs", "runs", "ours", "ours_sd", "least", "most"]


def header_rows(setting: Mapping[str, Any], packets: Iterable[PacketRecord]) -> Iterator[dict[str, Any]]:
    """A row for each kind of header in `packets`: the number of such headers, and their mean, least and most bytes."""
    sizes = pd.DataFrame([header for packet in packets for header in packet.headers], columns=["header", "bytes"])
    for header, some in sizes.groupby("header", sort=False)["bytes"]:
        yield {
            **{**setting, "header": header, "packets": len(some)},
            **{"mean_bytes": some.mean(), "least_bytes": some.min(), "most_bytes": some.max()},
        }


def beside(connections: pd.DataFrame, headers: pd.DataFrame, transports: Mapping[str, str]) -> pd.DataFrame:
    """Each number of the university study next to ours, by site and protocol. Ours are over all networks, since bytes
    do not depend on the delay.

    `connections` and `headers` have a row for each connection and each kind of header of each run; `transports` has the
    transport of each protocol. `ours` is the mean over runs, for the connection of the first request. Columns COLUMNS.
    """
    theirs = pd.read_csv(THEIRS, comment="#")
    first = connections[connections["first"]]
    rows = []
    for (site, protocol), runs in first.groupby(["site", "protocol"], sort=False):
        of_setting = headers[(headers["site"] == site) & (headers["protocol"] == protocol)]
        for one in theirs[theirs["transport"] == transports[protocol]].to_dict("records"):
            sizes = of_setting[of_setting["header"] == one["quantity"]]
            column = OF_CONNECTION.get(one["quantity"])
            means, least, most = (
                (runs[column],) * 3 if column else (sizes["mean_bytes"], sizes["least_bytes"], sizes["most_bytes"])
            )
            setting = {"site": site, "protocol": protocol, "quantity": one["quantity"], "theirs": one["bytes"]}
            values = {"runs": len(means), "ours": means.mean(), "ours_sd": means.std()}
            rows.append({**setting, **values, "least": least.min(), "most": most.max()})
    return pd.DataFrame(rows, columns=COLUMNS)
