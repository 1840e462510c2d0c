"""The answer on one site as a page: the sentence, how sure it is, and the reasons; the report has everything else.

The page is a single file, so that it can be sent to others.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.answer import PAIR, NetworkAnswer, answers, milestones
from analysis.figures.films import Strip, strips, typical
from analysis.networks import further
from analysis.report.answer_sentences import (
    amount,
    change,
    command_for_more,
    ends,
    headline,
    how_sure,
    loads_of_each,
    why,
)
from analysis.report.charts import Axis, interval, scale
from analysis.report.conditions import of_conditions
from analysis.report.level_ground import level_ground
from analysis.report.page import VERDICT_CLASSES, environment, jpeg, page_basics, styles
from analysis.report.section import ReportTable, text_table
from analysis.report.warnings import of_busy_processor, of_few_cores, of_missing_times
from analysis.report.write import write_tables
from analysis.runs import CampaignTable, load
from analysis.samples import missing_times
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import EQUIVALENT, FASTER
from analysis.text import label, label_with_title, level, ms, ms_interval, percent, percent_interval, plural, signed_ms
from base.errors import EyelevelError
from base.files import replacing_folder
from base.ownership import give_to_caller

ANSWER, INDEX = "answer", "index.html"
COMMAND = re.compile(r"(make answer(?: [A-Z_]+=\S+)+)")
# The protocols of the pair, by the names that users of `eyelevel answer` know.
HTTP_VERSIONS = ("HTTP/2", "HTTP/3")
# The most pictures of each film, and their width; a page of two networks has up to 40 pictures.
PICTURES, PICTURE_WIDTH = 10, 320
QUALITY = 70
# How much more of the page must be visible, in percent, for a picture to be new.
NEWS = 5


@dataclass(frozen=True)
class Card:
    """The part of the page on one network.

    `verdict`: in words, qualified by `detail`; `kind`: the CSS class of the verdict; `chart`: a drawing of the
    interval, empty without one, and the `scale` below it; `strips`: a strip of pictures for each
    version of HTTP, or `no_strips`, the reason why there is none.
    """

    title: str
    network: str
    verdict: str
    detail: str
    kind: str
    chart: Markup
    scale: Markup
    strips: Sequence["PictureStrip"]
    no_strips: str


@dataclass(frozen=True)
class PictureStrip:
    """Pictures of a load's film, each with its time (ms), how much of the page is visible (percent), and a data URL.

    `is_new`: for each time, whether any load of the network looks different than in the new pictures before; a narrow
    screen shows only these. `first_complete`: the place of the first picture of the complete page.
    """

    name: str
    run: int
    is_new: Sequence[bool]
    first_complete: int | None
    pictures: Sequence[tuple[float, int, str]] = field(default_factory=list)


def write_answer(
    folder: Path,
    question: Hypotheses,
    recording: Sequence[str],
    *,
    has_report: bool,
    servers: Sequence[str] = (),
    films: Sequence[str] = (),
) -> tuple[str, Path, str | None]:
    """Write the page on the campaign in `folder` into that folder, and replace an older one; returns its first
    sentence, its path, and the command for more runs (`command_for_more`).

    `recording`: why loads of the recording say little about the site, if they do; `servers`: facts about the recorded
    servers that the answer leaves out; `films`: which text the films do not show. Raises EyelevelError.
    """
    campaign = load(folder)
    by_network, (site,) = answers(campaign, question), campaign.settings.sites
    sentence, table = headline(site, by_network), milestones(campaign, question)
    page_tables = tables(by_network, table, question)
    into = folder / ANSWER
    with replacing_folder(into, INDEX) as new:
        (new / "tables").mkdir()
        write_tables(page_tables, new / "tables")
        templates = environment({})
        templates.filters["with_commands"] = with_commands
        template = templates.get_template("site_answer.html.j2")
        html = template.render(
            **page_basics(campaign.document) | {"css": styles("page.css", "answer.css")},
            tables=page_tables,
            name=campaign.name,
            site=site,
            url=campaign.settings.sites[site].get("url", ""),
            sentence=sentence,
            basis=basis(by_network),
            recording=recording,
            cards=cards(campaign, site, by_network),
            bound=level(question.equivalence_margin),
            how_sure=how_sure(by_network, campaign, question),
            caution=[*films, *cautions(campaign)],
            why=why(by_network, table, campaign.rtt_ms.get),
            level_ground=level_ground(campaign, [PAIR]),
            page_facts=page_facts(campaign, site),
            servers=servers,
            pictures=PICTURES,
            has_report=has_report,
        )
        (new / INDEX).write_text(html)
    give_to_caller(into)
    return sentence, into / INDEX, command_for_more(by_network, campaign)


def with_commands(text: str) -> Markup:
    """`text` for the page, with its commands of make marked as code."""
    parts = COMMAND.split(text)
    return Markup("").join(Markup("<code>{}</code>" if n % 2 else "{}").format(part) for n, part in enumerate(parts))


def basis(by_network: Sequence[NetworkAnswer]) -> str:
    """How many loads the sentence rests on."""
    pairs, rejected, attempts = (
        sum(values) for values in zip(*((one.pairs, one.rejected, one.attempts) for one in by_network), strict=True)
    )
    text = f"{loads_of_each(pairs)} protocol on {plural('network', len(by_network))}"
    return f"{text}; {rejected} of {plural('attempt', attempts)} were rejected" if rejected else text


def cautions(campaign: CampaignTable) -> list[str]:
    """Facts about the loads, the machine, the emulation and the servers that readers must know before they trust the
    answer."""
    document, cores = campaign.document, campaign.document.cores_of_a_run
    return [
        *of_missing_times(missing_times(campaign)),
        *(of_busy_processor(campaign.valid, cores) or of_few_cores(cores)),
        *of_conditions(document),
    ]


def page_facts(campaign: CampaignTable, site: str) -> list[str]:
    """The size and the hosts of the page, and how many hosts are on other domains."""
    facts = campaign.known_sites.get(site)
    if not facts:
        return []
    texts = [
        f"The page: {plural('file', facts.exchanges)} of {facts.bytes / 1e6:.2g} MB from {plural('host', facts.hosts)}"
        f" on {plural('server', facts.servers)}."
    ]
    if facts.third_party_hosts:
        texts.append(
            f"{facts.third_party_hosts} of its {plural('host', facts.hosts)} "
            f"{'is' if facts.third_party_hosts == 1 else 'are'} under another domain than the page. The answer "
            "assumes that all hosts speak HTTP/3; if only the page's own do, the difference may be larger or smaller."
        )
    return texts


def cards(campaign: CampaignTable, site: str, by_network: Sequence[NetworkAnswer]) -> list[Card]:
    """A card for each network."""
    ends = [end for one in by_network for end in (one.low, one.high)]
    axis = Axis.of([one.gain for one in by_network], ends, [one.margin for one in by_network])
    return [_card(campaign, site, one, axis) for one in by_network]


def _card(campaign: CampaignTable, site: str, answer: NetworkAnswer, axis: Axis) -> Card:
    strips, no_strips = _strips(campaign, site, answer.network)
    verdict, detail = in_words(answer)
    return Card(
        answer.heading,
        network_words(campaign.network_settings.get(answer.network, {})),
        verdict,
        detail,
        VERDICT_CLASSES[answer.verdict] if answer.pairs else "open",
        chart(answer, axis),
        scale(axis),
        strips,
        no_strips,
    )


def in_words(answer: NetworkAnswer) -> tuple[str, str]:
    """The verdict on one network as a heading, and its qualification."""
    if not answer.pairs:
        return "No answer", f"no pair of loads counts, of {plural('attempt', answer.attempts)}"
    bounds, loads = ends(answer.low, answer.high), loads_of_each(answer.pairs)
    if answer.verdict == EQUIVALENT:
        return "No difference", f"less than {level(answer.margin)} either way; {loads}"
    if not answer.is_decided:
        may_be = " ".join(filter(None, (bounds, answer.direction)))
        return "Not decided", f"it may be {may_be}; {loads}" if bounds else f"{loads} cannot tell"
    verdict = f"{change(answer)} {'sooner' if answer.verdict == FASTER else 'later'}"
    return verdict, "; ".join(filter(None, (amount(answer.difference_ms), bounds, loads)))


def network_words(network: Mapping[str, Any]) -> str:
    """A network for readers who do not know its name: rates, round trip, losses."""
    up, down = network.get("up_mbps"), network.get("down_mbps")
    parts = [f"{down:g} Mbit/s down, {up:g} up"] if up and down else []
    parts += [f"a round trip of {network['min_rtt_ms']:g} ms"] if network.get("min_rtt_ms") else []
    parts += [f"{level(network['loss'])} of packets lost"] if network.get("loss") else []
    return ", ".join([*parts, *further(network)])


def chart(answer: NetworkAnswer, axis: Axis) -> Markup:
    """The change on a network with its interval, and the range that counts as no difference. Empty without an
    interval."""
    if not (math.isfinite(answer.low) and math.isfinite(answer.high)):
        return Markup("")
    text = (
        f"{label(answer.network)}: measured {percent(answer.gain)}, {percent_interval(answer.low, answer.high)}; no "
        f"difference below {level(answer.margin)}"
    )
    return interval(axis, answer.gain, answer.low, answer.high, answer.margin, text)


def _strips(campaign: CampaignTable, site: str, network: str) -> tuple[list[PictureStrip], str]:
    """The films of a typical load over each protocol as pictures at the same times; or the reason why there are
    none."""
    missing = "No film was kept of a load over each that counts."
    shots = [typical(campaign.runs, campaign.folder, site, network, protocol) for protocol in PAIR]
    both = [shot for shot in shots if shot]
    if len(both) < len(shots):
        return [], missing
    try:
        # Nothing changes after the last visual change, though the load event may come later.
        end_ms = max(shot.metrics.get("lvc", shot.end_ms) for shot in both)
        films = strips(both, PICTURES, end_ms)
    except EyelevelError as error:
        return [], str(error)
    seen = list(zip(*(film.complete for film in films), strict=True))
    is_new, last = [True], seen[0]
    for now in seen[1:]:
        is_new.append(
            any(after - before >= NEWS or after == 100 > before for before, after in zip(last, now, strict=True))
        )
        last = now if is_new[-1] else last
    return [_pictures(name, strip, is_new) for name, strip in zip(HTTP_VERSIONS, films, strict=True)], ""


def _pictures(name: str, strip: Strip, is_new: Sequence[bool]) -> PictureStrip:
    pictures = [jpeg(pixels, PICTURE_WIDTH, QUALITY) for pixels in strip.frames]
    timed = list(zip(strip.times_ms, strip.complete, pictures, strict=True))
    return PictureStrip(name, strip.shot.run, is_new, strip.first_complete, timed)


def tables(
    by_network: Sequence[NetworkAnswer], milestone_table: pd.DataFrame, question: Hypotheses
) -> list[ReportTable]:
    """The table of the result on each network, and the table of the page's milestones."""
    hold = f"Intervals hold with {level(question.confidence)}. Negative is sooner."
    answer_table = pd.DataFrame([vars(answer) for answer in by_network]).drop(columns=["excluded"])
    answer_texts = text_table(
        answer_table,
        {
            "network": ("network", label),
            "verdict": "HTTP/3 is",
            "gain": ("change", percent),
            ("low", "high"): ("interval", percent_interval),
            "margin": ("no difference below", percent),
            "reference_ms": ("HTTP/2 [ms]", ms),
            "pairs": "loads of each",
            "rejected": "rejected attempts",
        },
    )
    milestone_texts = text_table(
        milestone_table,
        {
            "network": ("network", label),
            "metric": ("what", label_with_title),
            "typical_reference": ("HTTP/2 [ms]", ms),
            "typical_compared": ("HTTP/3 [ms]", ms),
            "difference": ("difference [ms]", signed_ms),
            ("low", "high"): ("interval [ms]", ms_interval),
        },
    )
    return [
        ReportTable(
            "milestones",
            "Milestones of the loads",
            milestone_table,
            milestone_texts,
            f"Typical times over the pairs of loads that count. {hold} Only the Speed Index was declared in advance: "
            "the others explain it, and decide nothing.",
        ),
        ReportTable("answer", "On each network", answer_table, answer_texts, hold),
    ]
