"""The answer on one site as a page: the sentence, how sure it is, and why; the report has all else."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from analysis.answer import NetworkAnswer, answers, headline, how_sure, milestones, why
from analysis.hypotheses import Hypotheses, Pair
from analysis.report.level_ground import level_ground
from analysis.report.page import Contents, environment, page_basics
from analysis.report.section import ReportTable, text_table
from analysis.report.write import LIBRARIES, write_tables
from analysis.runs import load
from analysis.text import (
    label,
    label_with_title,
    level,
    ms,
    ms_interval,
    percent,
    percent_interval,
    signed_ms,
)
from base.files import replacing_folder
from base.ownership import give_to_caller

ANSWER, INDEX = "answer", "index.html"


def write_answer(folder: Path, question: Hypotheses, recording: Sequence[str], *, has_report: bool) -> tuple[str, Path]:
    """Write the page on the campaign in `folder` into it, in place of an older one; returns its first sentence and
    where it is. `recording`: what makes loads of the recorded site say little about it. Raises EyelevelError."""
    campaign = load(folder)
    by_network, (site,) = answers(campaign, question), campaign.document.sites
    sentence, table = headline(site, by_network), milestones(campaign, question)
    pair = Pair(*question.restricted_to(campaign.protocols, campaign.metrics).family[0])
    contents = Contents({}, {"tables": tables(by_network, table, question)}, [], _versions())
    into = folder / ANSWER
    with replacing_folder(into, INDEX) as new:
        (new / "tables").mkdir()
        write_tables(contents.all_tables, new / "tables")
        template = environment(new, []).get_template("answer.html.j2")
        html = template.render(
            **page_basics(campaign.document, contents),
            name=campaign.name,
            site=site,
            url=campaign.document.settings["sites"][site].get("url", ""),
            sentence=sentence,
            recording=recording,
            how_sure=how_sure(by_network, campaign, question),
            why=[*why(by_network, table, campaign.rtt_ms.get), *level_ground(campaign, [pair])],
            has_report=has_report,
        )
        (new / INDEX).write_text(html)
    give_to_caller(into)
    return sentence, into / INDEX


def tables(
    by_network: Sequence[NetworkAnswer], milestone_table: pd.DataFrame, question: Hypotheses
) -> list[ReportTable]:
    """What was found behind each network, and what the page went through."""
    hold = f"Intervals hold with {level(question.confidence)}. Negative is sooner."
    answer_table = pd.DataFrame([vars(answer) for answer in by_network]).drop(columns=["excluded"])
    answer_texts = text_table(
        answer_table,
        {
            "network": ("network", label),
            "verdict": "HTTP/3 is",
            "gain": ("difference", percent),
            ("low", "high"): ("interval", percent_interval),
            "margin": ("no difference below", percent),
            "reference_ms": ("HTTP/2 [ms]", ms),
            "pairs": "pairs of loads",
            "attempts": "attempts",
        },
    )
    milestone_texts = text_table(
        milestone_table,
        {
            "network": ("network", label),
            "metric": ("what", label_with_title),
            "mean_reference": ("HTTP/2 [ms]", ms),
            "mean_compared": ("HTTP/3 [ms]", ms),
            "difference": ("difference [ms]", signed_ms),
            ("low", "high"): ("interval", ms_interval),
        },
    )
    return [
        ReportTable("answer", "Behind each network", answer_table, answer_texts, hold),
        ReportTable(
            "milestones",
            "What came when",
            milestone_table,
            milestone_texts,
            f"Means over the pairs of loads that count. {hold} These were not declared before: they explain, "
            "and decide nothing.",
        ),
    ]


def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}
