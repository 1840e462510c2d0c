"""The bytes, packets and times of a connection, compared with those that the university study reports."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from studies.packets.bytes import PAYLOAD
from studies.packets.dissection import PacketRecord

THEIRS = Path(__file__).with_name("university.csv")
# The university study's quantities of a connection, with their units → ours, from the columns of
# `studies.packets.runs`. The study's other quantities are kinds of headers.
OF_CONNECTION: Mapping[tuple[str, str], Callable[[pd.DataFrame], Any]] = {
    ("handshake", "bytes"): lambda runs: runs["handshake_bytes"],
    ("connection", "bytes"): lambda runs: runs["bytes"],
    ("established", "bytes"): lambda runs: runs["bytes"] - runs["handshake_bytes"],
    ("overhead", "bytes"): lambda runs: runs["bytes"] - runs[PAYLOAD],
    ("padding of the first packet", "bytes"): lambda runs: runs["first_packet_padding"],
    ("connection", "packets"): lambda runs: runs["packets"],
    ("handshake", "ms"): lambda runs: runs["handshake_ms"],
    ("first byte", "ms"): lambda runs: runs["first_byte_ms"] - runs["handshake_ms"],
    ("content", "ms"): lambda runs: runs["content_ms"],
    ("closing", "ms"): lambda runs: runs["closing_ms"],
}
COLUMNS = ["site", "network", "protocol", "added_ms", "quantity", "unit", "theirs", "theirs_sd", "runs", "ours"]
COLUMNS += ["ours_sd", "least", "most"]
ALL_NETWORKS = "all"


def header_rows(setting: Mapping[str, Any], packets: Iterable[PacketRecord]) -> Iterator[dict[str, Any]]:
    """A row for each kind of header in `packets`: the number of such headers, and their mean, least and most bytes."""
    sizes = pd.DataFrame([header for packet in packets for header in packet.headers], columns=["header", "bytes"])
    for header, some in sizes.groupby("header", sort=False)["bytes"]:
        yield {
            **{**setting, "header": header, "packets": len(some)},
            **{"mean_bytes": some.mean(), "least_bytes": some.min(), "most_bytes": some.max()},
        }


def beside(connections: pd.DataFrame, headers: pd.DataFrame, transports: Mapping[str, str]) -> pd.DataFrame:
    """Each number of the university study next to ours, by site and protocol. Bytes and packets do not depend on the
    delay, so ours are over all networks. Times stand by network and added delay, where it is one of theirs.

    `connections` (of `with_added_delay`) and `headers` have a row for each connection and each kind of header of each
    run; `transports` has the transport of each protocol. `ours` is the mean over runs, for the connection of the first
    request. Columns COLUMNS.
    """
    theirs = pd.read_csv(THEIRS, comment="#")
    first = connections[connections["first"]]
    rows = []
    for (site, protocol), runs in first.groupby(["site", "protocol"], sort=False):
        of_setting = headers[(headers["site"] == site) & (headers["protocol"] == protocol)]
        for one in theirs[theirs["transport"] == transports[protocol]].to_dict("records"):
            setting = {**one, "site": site, "network": ALL_NETWORKS, "protocol": protocol}
            read = OF_CONNECTION.get((one["quantity"], one["unit"]))
            if read is None:
                sizes = of_setting[of_setting["header"] == one["quantity"]]
                rows.append(setting | _ours(sizes["mean_bytes"], sizes["least_bytes"], sizes["most_bytes"]))
            elif one["unit"] != "ms":
                rows.append(setting | _ours(read(runs)))
            else:
                for base, some in runs[runs["added_ms"] == one["added_ms"]].groupby("base", sort=False):
                    rows.append({**setting, "network": base} | _ours(read(some)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _ours(means: pd.Series, least: pd.Series | None = None, most: pd.Series | None = None) -> dict[str, Any]:
    """The columns of a row with our numbers, whose `means` are of runs; their extremes unless given otherwise."""
    extremes = {"least": (means if least is None else least).min(), "most": (means if most is None else most).max()}
    return {"runs": means.count(), "ours": means.mean(), "ours_sd": means.std(), **extremes}


def with_added_delay(connections: pd.DataFrame) -> pd.DataFrame:
    """`connections` with `base`, the network without its added delay, and `added_ms`, that delay."""
    table = connections.assign(base=connections["network"].str.partition("+")[0])
    return table.assign(added_ms=table["rtt_ms"] - table.groupby(["site", "base"])["rtt_ms"].transform("min"))
