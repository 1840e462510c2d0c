"""The first screen of a report on a campaign with known truth states the truth, and gives all necessary warnings."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from support.first_screens import document, known_screen, of_kind, without
from support.known_campaigns import CAMPAIGNS, write

from analysis.report.campaign_pages import campaign_pages
from analysis.report.first_screen import lines, qualifications, sentences
from analysis.report.run_files import Links
from analysis.report.section import ANSWER
from analysis.report.sentences import warnings
from analysis.report.warnings import titled
from analysis.runs import load
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE
from analysis.text import label
from base.places import PROJECT

# The campaigns whose page is written: one for each kind of answer.
REPORTED = ("null", "broken", "early")


def names_in(names: frozenset[str], text: str) -> set[str]:
    """The `names` that occur in `text`; TCP+ does not count as TCP."""
    return {name for name in names if re.search(rf"(?<![\w+]){re.escape(label(name))}(?![\w+])", text)}


@pytest.mark.slow
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_the_first_screen_says_what_is_true(name: str) -> None:
    screen, known = known_screen(name), CAMPAIGNS[name]
    expected, pairs = known.screen, 2 if "tcp+bbr" in known.protocols else 1
    assert len(screen.verdicts) == pairs * 2 * len(known.networks) * len(known.browsers)
    for row in screen.verdicts.to_dict("records"):
        assert row["verdict"] in expected.words(row["network"]), row
    # That pages differ is said beside the verdict.
    texts = [*screen.answer, *screen.warnings]
    assert {kind for kind in expected.warnings if not of_kind(texts, kind)} == set(), texts
    assert {kind: of_kind(texts, kind) for kind in expected.silent if of_kind(texts, kind)} == {}
    if expected.is_quiet:
        assert without(screen.warnings, expected.facts) == []
    for line in lines(screen.findings):
        assert line.words.startswith((*expected.words(line.network), EQUAL_ON_AVERAGE))
    needed = " ".join(text for kind in expected.warnings for text in of_kind(texts, kind))
    assert names_in(expected.named, needed) == expected.named, needed
    assert names_in(expected.spared, needed) == set(), needed


@pytest.mark.slow
def test_the_document_has_the_first_screens_of_today() -> None:
    assert (PROJECT / "docs/contributors/known-campaigns.md").read_text() == document()


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTED)
def test_the_page_begins_with_them(name: str, tmp_path: Path) -> None:
    """The page is written without its figures."""
    folder = tmp_path / name
    write(folder, name)
    findings = replace(known_screen(name).findings, campaign=load(folder))
    pages = campaign_pages(findings, [], frozenset(), {}, Links(folder, folder / "report"))
    assert pages.keys() == {ANSWER}, "no page without a section"
    html = unescape(pages[ANSWER])
    # The whole line is the text alternative of its drawing.
    assert [line.text for line in lines(findings) if f'aria-label="{line.text}"' not in html] == []
    text = re.sub(r"<[^>]*>", "", html.partition('<section id="basis">')[0])
    parts = [part for warning in (*qualifications(findings), *warnings(findings)) for part in titled(warning)]
    numbers = [line.numbers for line in lines(findings)]
    assert [part for part in (*sentences(findings), *parts, *numbers) if part not in text] == []


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("order", "they were not measured in random order"),
        ("carry-over", "the load before each can explain up to 4.2 %"),
        ("processor", "QUIC's loads waited longer for a processor"),
        ("tenth", None),
        ("broken", None),
    ],
)
def test_an_answer_that_something_else_may_explain_says_so_itself(name: str, cause: str | None) -> None:
    """Two readers took the answers of such campaigns for surer than those of sound ones."""
    sentence, *others = known_screen(name).answer
    assert sentence.endswith(" This may not be due to the protocols.") == bool(cause)
    causes = [details for title, details in map(titled, others) if title.startswith("Another cause can explain half")]
    assert [text.lower() for text in causes] == ([f"{cause}.".lower()] if cause else [])
