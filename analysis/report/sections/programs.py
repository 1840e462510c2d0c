"""Whether the declared contrasts of TCP and QUIC hold with other servers and browsers (`analysis.programs`)."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.aspects import Decisions, decisions
from analysis.findings import Findings
from analysis.programs import (
    DEPENDS,
    INDEPENDENT,
    further_differences,
    pairs_beside,
    program_differences,
    program_gains,
)
from analysis.report import alternatives
from analysis.report.level_ground import level_ground
from analysis.report.section import ReportFigure, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import declared_values, formed
from analysis.runs import rows_of
from analysis.statistics.outcomes import NOT_DECIDED, PROGRAM_MARGIN
from analysis.text import file_name, label, level, listing, pair_label, percent, percent_interval, plural, program, span

NAME = "programs"

# The forms of this section's tables, in the format of `analysis/report/tables.toml`.
FORMS: Mapping[str, Any] = tomllib.loads("""
[program_differences]
title = "Whether a contrast depends on the program"
columns = [
    "network", "metric", [["measured_compared", "measured_reference"], "measured", "pair_label"],
    [["servers", "browser"], "with", "program"], [["compared_before", "reference_before"], "beside", "pair_label"],
    [["servers_before", "browser_before"], "compared with", "program"],
    "sites", "blocks", ["difference", "change of the ratio", "percent"],
    [["difference_low", "difference_high"], "{confidence} interval", "percent_interval"], ["p", "p", "p_value"],
    ["p_corrected", "corrected p", "p_value"], ["equivalence_p_corrected", "corrected p of equivalence", "p_value"],
    "verdict",
]
note = "Change of the ratio: by how much compared / reference is larger with these programs than with those that they \
are compared with, within blocks, on average over the sites of this campaign; +5 % means that QUIC's lead is smaller \
by that. Each row changes one program, a server or the browser; how else the settings of two servers differ, the text \
above says. Corrected by Holm's method over {tests}. Depends: corrected p < {significant_p}. Does not depend: shown \
to change by less than {program_margin} (two one-sided tests). Not decided: neither."

[program_gains]
title = "The contrast with each of the programs"
columns = [
    "network", "metric", [["measured_compared", "measured_reference"], "measured", "pair_label"],
    [["servers", "browser"], "with", "program"], "sites", "blocks", ["gain", "change", "percent"],
    [["gain_low", "gain_high"], "{confidence} interval", "percent_interval"],
]
note = "Change: of the ratios within blocks, on average over the sites of this campaign. Each server with settings of \
QUIC is represented by the first one whose congestion control is that of the declared contrast (else by its first \
one), against the server's first setting of TCP, or against the contrast's own where the server has none; the \
settings that these are compared with have rows, too."
""")


def sections(findings: Findings) -> list[Section]:
    """The section of a campaign with several programs; none without."""
    campaign, declared = findings.campaign, findings.declared
    differences = program_differences(campaign, findings.samples, declared)
    if differences.empty:
        return []
    gains = program_gains(campaign, findings.samples, declared)
    values = {
        "tests": plural("test", len(differences)),
        "program_margin": level(PROGRAM_MARGIN),
        **declared_values(findings),
    }
    section = Section(
        NAME,
        "Does it hold with other programs?",
        (
            " ".join(sentences(differences, declared.confidence, decisions(campaign.document))),
            *level_ground(campaign, pairs_beside(differences)),
        ),
        figures=tuple(_figures(gains, differences, declared.confidence)),
        tables=(
            formed("program_differences", FORMS["program_differences"], differences, **values),
            formed("program_gains", FORMS["program_gains"], gains, **values),
        ),
        unfolded_figures=2,
    )
    return [section]


def _figures(gains: pd.DataFrame, differences: pd.DataFrame, confidence: float) -> Iterator[ReportFigure]:
    """A figure for each contrast and metric."""
    # Imported here, since few campaigns have such figures.
    from analysis.figures import programs as figure

    for (reference, compared, metric), rows in gains.groupby(["reference", "compared", "metric"], sort=False):
        of_contrast = rows_of(differences, reference=reference, compared=compared, metric=metric)
        if of_contrast.empty:
            continue
        caption = (
            f"{pair_label(compared, reference)} with each of the programs, in {label(metric)}: the change over the "
            f"sites of this campaign, with its {level(confidence)} interval. Colours say whether the contrast depends "
            "on the program: servers are compared within a browser, and browsers with the servers of the declared "
            "contrast."
        )
        name = file_name(f"programs_{compared}_against_{reference}_{metric}")
        arguments = (rows, of_contrast, tuple(dict.fromkeys(rows["network"])))
        yield ReportFigure(name, caption, figure.draw, arguments, alternatives.programs(of_contrast))


SECTION = CampaignSection(NAME, place=60, of=sections)


def sentences(differences: pd.DataFrame, confidence: float, decided: Decisions) -> list[str]:
    """The table of `program_differences` in words: a text for each contrast, empty without other programs. `decided`
    has the known decisions of the campaign's protocols."""
    return [
        f"{pair_label(str(compared), str(reference))} {_sentence(rows, confidence)}{_not_the_program(rows, decided)}"
        for (reference, compared), rows in differences.groupby(["reference", "compared"], sort=False)
    ]


def _not_the_program(rows: pd.DataFrame, decided: Decisions) -> str:
    """How the settings in these rows differ besides the programs; empty if they do not."""
    texts = [
        f"{label(pair.compared)} and {label(pair.reference)} in {listing(names)}"
        for pair in pairs_beside(rows)
        if (names := further_differences(decided, *pair))
    ]
    return f" Not the program alone: these settings also differ, {'; '.join(texts)}." if texts else ""


def _sentence(rows: pd.DataFrame, confidence: float) -> str:
    most = rows.loc[np.log1p(rows["difference"]).abs().where(rows["verdict"] == DEPENDS, -1).idxmax()]
    texts = {
        DEPENDS: f"the difference depends on the program (most on {label(most['network'])} in {label(most['metric'])}: "
        f"{program(most['servers'], most['browser'])} changes its ratio by {percent(most['difference'])} beside "
        f"{program(most['servers_before'], most['browser_before'])}, {level(confidence)} interval "
        f"{percent_interval(most['difference_low'], most['difference_high'])})",
        INDEPENDENT: f"the difference does not change by more than {level(PROGRAM_MARGIN)}",
        NOT_DECIDED: "that is not decided",
    }
    numbers = rows["verdict"].value_counts()
    parts = [f"in {numbers[verdict]} {text}" for verdict, text in texts.items() if verdict in numbers]
    programs = list(dict.fromkeys(map(program, rows["servers"], rows["browser"])))
    sites, blocks = (span(int(rows[name].min()), int(rows[name].max())) for name in ("sites", "blocks"))
    return (
        f"was also measured with {listing(programs)}. {plural('comparison', len(rows))} of programs, each over "
        f"{sites} {'site' if sites == '1' else 'sites'} and {blocks} {'block' if blocks == '1' else 'blocks'}, "
        f"{'was' if len(rows) == 1 else 'were'} made: {listing(parts)}."
    )
