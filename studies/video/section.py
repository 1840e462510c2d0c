"""The report's section on video: means, deviations and p of each video's plays, and the plays over time."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, Section, text_table
from analysis.text import NOTHING, file_name, label, listing, p_value
from record.video import page_named
from studies.video import figure
from studies.video.measure import STUDY
from studies.video.play import LEAST_REBUFFER_MS, MEASURES, WAIT_MBPS_PER_S, Measure
from studies.video.tables import SETTING, PlayedRun, read_runs, summary, table

# What Kakhki et al. take for a difference.
SIGNIFICANT_P = 0.01
# Of a video that is neither better nor worse.
SAME, UNTESTED = "not shown to differ", "not compared"


def section(folder: Path) -> Section | None:
    """The section on the plays of the campaign in `folder`; None when there are none. Raises EyelevelError."""
    runs = read_runs(folder, STUDY)
    if not runs:
        return None
    plays = table(runs)
    means = summary(plays)
    settings = list(dict.fromkeys((one.network, one.site) for one in runs))
    drawn = tuple(
        _figure(network, site, [one for one in runs if (one.network, one.site) == (network, site)])
        for network, site in settings
    )
    tables = (
        means_table(means),
        ReportTable("video-plays", "Every play", plays, text_table(plays, PLAY_COLUMNS)),
    )
    return Section(STUDY, "Video", (lead(means), *definitions()), drawn, tables=tables)


def lead(means: pd.DataFrame) -> str:
    """For which videos the score differs, of each protocol but the first, behind each network."""
    first, *others = dict.fromkeys(means["protocol"])
    scores = means[means["measure"] == "qoe"]
    sentences = []
    for network, of_network in scores.groupby("network", sort=False):
        reference = of_network[of_network["protocol"] == first].set_index("site")["mean"]
        for protocol in others:
            verdicts: dict[str, list[str]] = {"better": [], "worse": [], SAME: [], UNTESTED: []}
            for row in of_network[of_network["protocol"] == protocol].itertuples():
                better = "better" if row.mean > reference[row.site] else "worse"
                # Without two plays of each there is no p.
                verdict = better if row.p < SIGNIFICANT_P else UNTESTED if math.isnan(row.p) else SAME
                verdicts[verdict].append(video_label(row.site))
            text = f"Behind {label(str(network))}, by the score of Yin et al., {label(protocol)} is "
            against = {SAME: f"{SAME} from", UNTESTED: f"{UNTESTED} with"}
            parts = [
                f"{against.get(word, f'{word} than')} {label(first)} for {listing(sites)}"
                for word, sites in verdicts.items()
                if sites
            ]
            sentences.append(f"{text}{', '.join(parts)} (Welch's test, p < {SIGNIFICANT_P:g}).")
    return " ".join(sentences) or f"How videos play over {label(first)}."


def definitions() -> tuple[str, ...]:
    """What the numbers are, and what they do not say."""
    return (
        f"A rebuffer is a picture that stands still for {LEAST_REBUFFER_MS} ms beyond its time after the first frame, "
        "by the times at which frames were shown; rates are those of the qualities that were played, without sound. "
        "The share of the video that was loaded is of all its segments; a player stops asking when its buffer is full.",
        "QoE is the linear score of Yin et al. (SIGCOMM 2015): the rates of the played segments in Mbit/s, less all "
        f"changes of the rate, less {WAIT_MBPS_PER_S:g} for each second of waiting (before the first frame, and in "
        "rebuffers); the sum over as many segments as could have been played. The weights are theirs, for rates of up "
        "to 3 Mbit/s: where rates are higher, waiting weighs less beside them.",
    )


def video_label(site: str) -> str:
    """What a video is called in the report: its quality or rule, and the player if that is not dash.js."""
    video = page_named(site)
    return site if video is None else video.plays + (f" in {video.player}.js" if video.player == "hls" else "")


def means_table(means: pd.DataFrame) -> ReportTable:
    """The table of `tables.summary`, a column for each protocol."""
    first, *others = dict.fromkeys(means["protocol"])
    rows = []
    for (network, site), group in means.groupby(SETTING, sort=False):
        for measure in MEASURES:
            of_measure = group[group["measure"] == measure.name].set_index("protocol")

            row = {"network": label(str(network)), "video": video_label(str(site)), "measure": measure.heading}
            for name in (first, *others):
                mean, deviation = (_written(measure)(of_measure.loc[name, column]) for column in ("mean", "deviation"))
                row[label(name)] = f"{mean} ({deviation})"
            for name in others:
                row["p" if len(others) == 1 else f"p of {label(name)}"] = p_value(float(of_measure.loc[name, "p"]))
            rows.append(row)
    note = (
        f"Means over plays, and standard deviations in brackets. p: Welch's test against {label(first)}, not corrected "
        "for how many tests there are."
    )
    return ReportTable("video", "Plays of each video", means, pd.DataFrame(rows), note)


def _written(measure: Measure) -> Callable[[float], str]:
    return lambda value: NOTHING if math.isnan(value) else measure.form.format(value)


def _figure(network: str, site: str, runs: list[PlayedRun]) -> ReportFigure:
    seconds = runs[0].video.seconds
    caption = (
        f"{video_label(site)} behind {label(network)}: the rate at which segments came, the rate of the quality that "
        "was played, and the buffer. Lines are means, bands reach from the lower to the upper quartile; "
        "of the first they end with the last segment that came."
    )
    plays = [(one.protocol, one.play) for one in runs]
    return ReportFigure(file_name(f"{site}-{network}"), caption, figure.draw, (plays, seconds))


PLAY_COLUMNS: dict[Any, Any] = {
    **SITE_SETTING,
    "site": ("video", video_label),
    "run": "run",
    **{measure.name: (measure.heading, _written(measure)) for measure in MEASURES},
}
