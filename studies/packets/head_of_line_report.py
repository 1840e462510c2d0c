"""The part of the section on packets about head-of-line blocking: a paragraph, tables and figures."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, text_table
from analysis.text import label, mean_count, plural, share, whole_number
from studies.packets import head_of_line_figures
from studies.packets.head_of_line import CAUSES, FRONT, OTHERS, RECORD, STREAM
from studies.packets.runs import CapturedRun
from studies.packets.summary import RUNS, SETTING, means, summary

DEFINITIONS = (
    "Content is what servers sent on the streams of requests. From its arrival at the browser's end to its delivery a "
    "byte waits first for missing bytes of its own stream, as it would over any transport; then, over TCP, for the "
    "rest of its TLS record; then, once it is complete, for missing bytes of other streams in front of it: "
    "head-of-line blocking. The column 'others' has the part of that in which the record was whole, the least that "
    "it may be; the column 'any gap of others' has the most, with the time in which the record was not whole either. "
    "QUIC's streams do not wait for each other; 'in one sequence' is what any gap of others would have been, had the "
    "same packets carried one sequence, as TCP's do, in the order of sending."
)


def table(runs: Sequence[CapturedRun]) -> ReportTable:
    """The table of the causes for which bytes waited in each setting, and for which share of the load."""
    waits = _rows(runs)
    measures = [name for name in waits if name not in (*SETTING, "run", "rtt_ms", "ping_ms", "begin_s")]
    data = summary(waits, SETTING, measures)
    columns = SITE_SETTING | RUNS | means("plt_ms", "PLT [ms]", 0) | means("gaps", "gaps", 1)
    headings = {STREAM: "own stream", RECORD: "record", OTHERS: "others", FRONT: "any gap of others"}
    for cause, heading in headings.items():
        columns |= means(f"{cause}_mean_ms", f"{heading}, mean of a byte [ms]")
    columns |= means("sequence_front_mean_ms", "in one sequence, mean of a byte [ms]")
    columns |= means("others_longest_ms", "others, longest [ms]", 0)
    columns |= means("others_ms", "others, time [ms]", 0) | means("front_ms", "any gap of others, time [ms]", 0)
    columns |= {f"{cause}_share": (f"{headings[cause]}, share of the load", share) for cause in (OTHERS, FRONT)}
    note = (
        f"Mean ± standard deviation over runs, at the browser's end. {DEFINITIONS} Means of a byte are over all "
        "content of the load. Time: in which at least one byte waited, on whatever connection. Share of the load: of "
        "the time from navigation to the load event; the load did not become longer by as much, since it went on "
        "meanwhile. A gap opens when data arrives beyond the highest byte so far (QUIC: in a stream). The file has, "
        "for each cause, bytes, byte-seconds, the time, and the longest, median and mean wait."
    )
    return ReportTable("packets_waits", "Waits of data after its arrival", data, text_table(data, columns), note)


def loads_table(runs: Sequence[CapturedRun]) -> ReportTable:
    """The table of each single load."""
    data = _rows(runs)
    forms: dict[Any, Any] = {**SITE_SETTING, "run": ("run", whole_number)}
    forms |= {name: (heading, mean_count) for name, heading in (("content_bytes", "content [B]"), ("gaps", "gaps"))}
    for cause in (*CAUSES, FRONT):
        forms |= {f"{cause}_bytes": (f"{cause}: bytes", mean_count), f"{cause}_ms": (f"{cause}: time [ms]", mean_count)}
    forms |= {"plt_ms": ("PLT [ms]", mean_count)}
    note = "The bytes that waited and the time in which at least one did, by cause; the file has the other measures."
    return ReportTable("packets_waits_loads", "The same of every load", data, text_table(data, forms), note)


def paragraphs(runs: Sequence[CapturedRun]) -> Iterator[str]:
    """How much of the loads was head-of-line blocking, for each network on which data waited for other streams."""
    waits = _rows(runs)
    for network, of_network in waits.groupby("network", sort=False):
        parts = [
            f"{share(of_one['others_share'].mean())} to {share(of_one['front_share'].mean())} of the load over "
            f"{label(name)} ({plural('load', len(of_one))}; {of_one['others_mean_ms'].mean():.1f} to "
            f"{of_one['front_mean_ms'].mean():.1f} ms for the mean byte, which waits "
            f"{of_one['stream_mean_ms'].mean():.1f} ms for its own stream and "
            f"{of_one['record_mean_ms'].mean():.1f} ms for its TLS record)"
            for name, of_one in of_network.groupby("protocol", sort=False)
            if of_one["front_ms"].any()
        ]
        if parts:
            yield f"On {label(str(network))}, complete data waited for other streams in {'; '.join(parts)}."


def figures(runs: Sequence[CapturedRun]) -> Iterator[ReportFigure]:
    """The means of all settings, and single loads for each network on which data arrived beyond a gap."""
    waits = _rows(runs)
    columns = [f"{cause}_mean_ms" for cause in (*CAUSES, FRONT, f"sequence_{FRONT}")]
    data = summary(waits, SETTING, columns)
    least, most = data["runs"].min(), data["runs"].max()
    caption = (
        "Waits of content between arrival and delivery at the browser's end: means of all bytes of "
        + (f"{least} to {most} loads" if least < most else plural("load", most))
        + " of each setting; whiskers: standard deviation over loads of the wait for other streams."
    )
    yield ReportFigure("packets_waits", caption, head_of_line_figures.draw_means, (data,))
    for network, of_network in waits[waits["gaps"] > 0].groupby("network", sort=False):
        site = of_network.groupby("site", sort=False)[f"{FRONT}_byte_s"].mean().idxmax()
        chosen = _median_loads(
            [run for run in runs if run.setting["network"] == network and run.setting["site"] == site]
        )
        described = "; ".join(
            f"{label(run.setting['protocol'])}: run {run.setting['run']} of {number}" for run, number in chosen
        )
        caption = (
            f"{site} on {label(str(network))}, one load over each protocol, that of the median page load time "
            f"({described}): content that had arrived at the browser's end and content that could be delivered, and "
            "what the difference waited for."
        )
        curves = {
            run.setting["protocol"]: (run.deliveries, run.waits["begin_s"], run.waits["plt_ms"]) for run, _ in chosen
        }
        name = f"packets_waits_{network}".replace("+", "_plus_")
        yield ReportFigure(name, caption, head_of_line_figures.draw_loads, (curves,))


def _rows(runs: Sequence[CapturedRun]) -> pd.DataFrame:
    return pd.DataFrame([run.waits for run in runs])


def _median_loads(runs: Sequence[CapturedRun]) -> list[tuple[CapturedRun, int]]:
    """For each protocol, the load with the (lower) median page load time, and the number of loads."""
    of_protocols: dict[str, list[CapturedRun]] = {}
    for run in runs:
        of_protocols.setdefault(run.setting["protocol"], []).append(run)
    result = []
    for several in of_protocols.values():
        in_order = sorted(several, key=lambda run: (math.isnan(run.waits["plt_ms"]), run.waits["plt_ms"]))
        result.append((in_order[(len(in_order) - 1) // 2], len(in_order)))
    return result
