"""The report's section on video: means, deviations, differences and p of each video's plays, the plays that do not
count, and the plays over time."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.hypotheses import of_campaign
from analysis.report.section import SITE_SETTING, ReportFigure, ReportTable, Section, text_table
from analysis.runs import load
from analysis.text import NOTHING, file_name, label, level, listing, p_value, plural, span
from studies.video import figure, means_figure
from studies.video.measure import STUDY
from studies.video.pages import page_named
from studies.video.play import LEAST_REBUFFER_MS, MEASURES, WAIT_MBPS_PER_S, Measure
from studies.video.tables import SETTING, PlayedRun, attempts, read_runs, summary, table

# Kakhki et al.'s threshold for a difference.
SIGNIFICANT_P = 0.01
OF_GATES = "Each rejected attempt is listed under Exclusions, with what its gate said."
# The words for a video that is neither better nor worse.
SAME, UNTESTED = "not shown to differ", "not compared"


def section(folder: Path) -> Section | None:
    """The section on the plays of the campaign in `folder`; None if there are none. Raises EyelevelError."""
    runs = read_runs(folder, STUDY)
    if not runs:
        return None
    campaign = load(folder)
    confidence = of_campaign(folder, campaign.document).confidence
    plays, numbers = table(runs), attempts(campaign.runs, campaign.protocols)
    means = summary(plays, campaign.protocols, confidence)
    settings = list(dict.fromkeys((one.network, one.site) for one in runs))
    of_networks = plays.groupby("network", sort=False)
    drawn = (
        *(_means_figure(network, of_network, campaign.protocols, confidence) for network, of_network in of_networks),
        *(
            _figure(network, site, [one for one in runs if (one.network, one.site) == (network, site)])
            for network, site in settings
        ),
    )
    tables = (
        means_table(means, confidence),
        ReportTable(
            "video-attempts", "Plays that count, and attempts that do not", numbers, attempts_texts(numbers), OF_GATES
        ),
        ReportTable("video-plays", "Every play", plays, text_table(plays, PLAY_COLUMNS)),
    )
    paragraphs = (lead(means), scope(numbers, campaign.protocols), *definitions())
    return Section(STUDY, "Video", paragraphs, drawn, tables=tables)


def lead(means: pd.DataFrame) -> str:
    """The videos for which the score differs, for each protocol except the first, on each network; and the videos for
    which the result by the player's clock is different."""
    first, *others = dict.fromkeys(means["protocol"])
    sentences, tests = [], 0
    for network, of_network in means.groupby("network", sort=False):
        for protocol in others:
            by_pictures, by_clock = (verdicts(of_network, name, first, protocol) for name in ("qoe", "qoe_by_clock"))
            tests += sum(
                len(sites) for one in (by_pictures, by_clock) for word, sites in one.items() if word != UNTESTED
            )
            sentences.append(
                f"On {label(str(network))}, by the score of Yin et al., {label(protocol)} is "
                f"{in_words(by_pictures, first)} ({plays_each(of_network)})."
            )
            others_by_clock = {
                word: [site for site in sites if site not in by_pictures[word]] for word, sites in by_clock.items()
            }
            if any(others_by_clock.values()):
                sentences.append(f"By the player's clock it is {in_words(others_by_clock, first)}.")
    if not sentences:
        return f"How videos play over {label(first)}."
    several = f", without correction for {tests} tests" if tests > 1 else ""
    return f"{' '.join(sentences)} Better and worse: Welch's test, p < {SIGNIFICANT_P:g}{several}."


def verdicts(means: pd.DataFrame, measure: str, first: str, protocol: str) -> dict[str, list[str]]:
    """The sites of `means` on one network, grouped by the verdict of `measure` on `protocol` against the `first`."""
    result: dict[str, list[str]] = {"better": [], "worse": [], SAME: [], UNTESTED: []}
    of_protocol = means[(means["measure"] == measure) & (means["protocol"] == protocol)]
    for row in of_protocol.itertuples():
        better = "better" if row.difference > 0 else "worse"
        # p is NaN unless each protocol has two plays.
        result[better if row.p < SIGNIFICANT_P else UNTESTED if math.isnan(row.p) else SAME].append(str(row.site))
    return result


def in_words(of_words: dict[str, list[str]], first: str) -> str:
    """The videos that are better, worse or neither, compared with the `first` protocol, in words."""
    against = {SAME: f"{SAME} from", UNTESTED: f"{UNTESTED} with"}
    return ", ".join(
        f"{against.get(word, f'{word} than')} {label(first)} for {listing([video_label(site) for site in sites])}"
        for word, sites in of_words.items()
        if sites
    )


def plays_each(means: pd.DataFrame) -> str:
    """The number of plays that the means rest on."""
    least, most = int(means["plays"].min()), int(means["plays"].max())
    return f"{span(least, most)} {'play' if most == 1 else 'plays'} each"


def scope(numbers: pd.DataFrame, protocols: Sequence[str]) -> str:
    """How many plays count over each protocol, and why the others do not. If this differs between protocols, the
    compared plays may have been selected by it."""
    parts = []
    for name in protocols:
        some = numbers[numbers["protocol"] == name]
        text = f"{some['plays'].sum()} of {plural('play', some['runs'].sum())} over {label(name)} count"
        rejected = some["rejected"].sum()
        parts.append(f"{text}, {rejected or 'none'} of {plural('attempt', some['attempts'].sum())} rejected")
    return f"{'; '.join(parts)}."


def attempts_texts(numbers: pd.DataFrame) -> pd.DataFrame:
    """The table of `tables.attempts`, for readers."""
    columns: dict[Any, Any] = {
        "network": ("network", label),
        "site": ("video", video_label),
        "protocol": ("protocol", label),
        ("plays", "runs"): ("plays", "{} of {}".format),
        "attempts": "attempts",
        "rejected": "rejected",
        "gates": ("by the gates", lambda text: text or NOTHING),
    }
    return text_table(numbers, columns)


def definitions() -> tuple[str, ...]:
    """The definitions of the numbers, and their limits."""
    return (
        f"A rebuffer is a picture that stands still for {LEAST_REBUFFER_MS} ms beyond its time after the first frame, "
        "by the times at which frames were shown; rates are those of the qualities that were played, without sound. "
        "A video that did not begin has no rebuffers and no rate; its waiting is in the QoE.",
        "In a rebuffer the player stops, or its sound goes on: Chromium lets it for as long as pictures are late by "
        "less than 3 s, and skips those that it should have shown meanwhile. So pictures that are always a little late "
        "can stand still for longer than those that are far too late, of which none is skipped. Where much was "
        "skipped, a protocol that brought more of the video may have the worse rebuffers and QoE; by the player's "
        "clock, which goes on with the sound, it need not.",
        "“Video loaded” is the length of the segments that came until the end, played or not, and “share loaded” is "
        "its share of the whole video. A player stops asking when its buffer is full, so where links are fast enough "
        "both say how large it is.",
        "QoE is the linear score of Yin et al. (SIGCOMM 2015): the rates of the played segments in Mbit/s, less all "
        f"changes of the rate, less {WAIT_MBPS_PER_S:g} for each second of waiting (before the first frame, and in "
        "rebuffers); the sum over as many segments as could have been played. The weights are theirs, for rates of up "
        "to 3 Mbit/s: where rates are higher, waiting weighs less beside them.",
    )


def video_label(site: str) -> str:
    """The name of a video in the report: its quality or rule, and the player unless it is dash.js."""
    video = page_named(site)
    return site if video is None else video.plays + (f" in {video.player}.js" if video.player == "hls" else "")


def means_table(means: pd.DataFrame, confidence: float) -> ReportTable:
    """The table of `tables.summary`, with columns for each protocol."""
    first, *others = dict.fromkeys(means["protocol"])
    rows = []
    for (network, site), group in means.groupby(SETTING, sort=False):
        setting = {"network": label(str(network)), "video": video_label(str(site))}
        plays = group.groupby("protocol", sort=False)["plays"].first()
        rows.append(setting | {"measure": "plays"} | {label(name): str(number) for name, number in plays.items()})
        video = page_named(str(site))
        for measure in MEASURES:
            if measure.of_rules and video and not video.is_adaptive:
                continue
            of_measure = group[group["measure"] == measure.name].set_index("protocol")
            row = setting | {"measure": measure.heading}
            row |= {label(name): _mean(measure, of_measure.loc[name]) for name in (first, *others)}
            for name in others:
                of_name = "" if len(others) == 1 else f" of {label(name)}"
                row[f"difference{of_name}"] = _difference(measure, of_measure.loc[name])
                row[f"p{of_name}"] = p_value(float(of_measure.loc[name, "p"]))
            rows.append(row)
    note = (
        "Means over plays, and standard deviations in brackets; where only some plays have a value, of how many it is. "
        "Rates and switches are those of videos that are played by a rule; the file has them of all. "
        f"Difference: from {label(first)}, with Welch's {level(confidence)} interval. p: Welch's test against "
        f"{label(first)}. Neither is corrected for how many there are."
    )
    texts = pd.DataFrame(rows).fillna(NOTHING)
    return ReportTable(
        "video", "Plays of each video", means, texts, note if others else note.partition(" Difference")[0]
    )


def _mean(measure: Measure, row: "pd.Series[Any]") -> str:
    mean, deviation = (_written(measure)(row[name]) for name in ("mean", "deviation"))
    values, plays = row["values"], row["plays"]
    return f"{mean} ({deviation})" + (f", {values} of {plays}" if 0 < values < plays else "")


def _difference(measure: Measure, row: "pd.Series[Any]") -> str:
    if math.isnan(row["difference"]):
        return NOTHING
    # Put a sign in front of each number.
    form = measure.form.replace("{:", "{:+")
    difference, low, high = (form.format(row[name]) for name in ("difference", "low", "high"))
    return difference if math.isnan(row["low"]) else f"{difference} ({low} to {high})"


def _written(measure: Measure) -> Callable[[float], str]:
    return lambda value: NOTHING if math.isnan(value) else measure.form.format(value)


def _means_figure(network: str, plays: pd.DataFrame, protocols: Sequence[str], confidence: float) -> ReportFigure:
    names = {name: video_label(name) for name in dict.fromkeys(plays["site"])}
    caption = (
        f"Videos on {label(network)}: means over plays, and their {level(confidence)} intervals (Student's). "
        "The first frame is that of the plays that began; QoE is the score of Yin et al., by "
        "pictures; the table has it by the player's clock, too."
    )
    values = (plays, names, protocols, confidence)
    return ReportFigure(file_name(f"video-{network}"), caption, means_figure.draw, values)


def _figure(network: str, site: str, runs: list[PlayedRun]) -> ReportFigure:
    video = runs[0].video
    played = "the rate of the quality that was played, " if video.is_adaptive else ""
    caption = (
        f"{video_label(site)} on {label(network)}: the rate at which segments came, {played}the share of plays "
        "that waited, for the first frame or in a rebuffer, and the buffer. Lines are means, bands reach from the "
        "lower to the upper quartile; of the first they end with the last segment that came."
    )
    plays = [(one.protocol, one.play) for one in runs]
    return ReportFigure(file_name(f"{site}-{network}"), caption, figure.draw, (plays, video.seconds, video.is_adaptive))


PLAY_COLUMNS: dict[Any, Any] = {
    **SITE_SETTING,
    "site": ("video", video_label),
    "run": "run",
    **{measure.name: (measure.heading, _written(measure)) for measure in MEASURES},
}
