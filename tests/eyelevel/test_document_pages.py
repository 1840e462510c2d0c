"""The user's pages: their number of lines, the navigation, and that the lists and examples in them are complete.

User pages are those in the navigation (mkdocs.yml) outside its last part, Contributors, and docs/options.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.places import PROJECT
from dataset import gates
from dataset.table import WITHDRAWN
from dataset.verdicts import PERSON
from measure.campaign.expectations import EXPECTATIONS
from measure.interop.matrix import GATE as INTEROP
from measure.run.gates import GATES
from studies.downloads.measure import STUDY as DOWNLOADS
from studies.fairness.measure import STUDY as FAIRNESS
from studies.packets.measure import CAPTURE_GATE, PING_GATE
from studies.states.measure import STUDY as STATES
from studies.video.measure import STUDY as VIDEO

MOST_LINES = 3500
DOCS = PROJECT / "docs"
USER, CONTRIBUTORS = (
    re.findall(r": ([\w/.-]+\.md)$", part, re.MULTILINE)
    for part in (PROJECT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].split("  - Contributors:\n")
)
OPTIONS = "docs/options/"
FAQ = (DOCS / "faq.md").read_text()
# Modules that refuse to begin, or to resume, a measurement. The table of refusals quotes all of their messages.
REFUSING = (
    "base/places.py",
    "eyelevel/consent.py",
    "eyelevel/lanes.py",
    "eyelevel/measuring.py",
    "eyelevel/measuring_options.py",
    "eyelevel/requirements.py",
    "measure/campaign/budget.py",
    "measure/campaign/forecast.py",
    "measure/campaign/results.py",
    "measure/campaign/resuming.py",
    "measure/campaign/slot.py",
    "measure/host/device_index.py",
    "measure/host/exclusive.py",
    "measure/host/wakefulness.py",
)
ERRORS = ("EyelevelError", "Misuse")
# A message with fewer words of its own passes on another one.
LEAST_WORDS = 3


def test_the_user_pages_have_few_lines() -> None:
    lines = {name: len((PROJECT / name).read_text().splitlines()) for name in USER if not name.startswith(OPTIONS)}
    assert sum(lines.values()) <= MOST_LINES, f"shorten a page, or move details to docs/contributors/: {lines}"


def test_every_page_is_in_the_navigation_or_linked_from_the_contributors_pages() -> None:
    linked = {
        (PROJECT / page).parent.joinpath(target).resolve().relative_to(PROJECT).as_posix()
        for page in ("docs/contributors/index.md", "docs/decisions/README.md")
        for target in re.findall(r"\]\(([^)#:\s]+\.md)\)", (PROJECT / page).read_text())
    }
    pages = {path.relative_to(PROJECT).as_posix() for path in (*PROJECT.glob("*.md"), *DOCS.rglob("*.md"))}
    assert {page for page in pages if not page.startswith(OPTIONS)} - {*USER, *CONTRIBUTORS} - linked == set()
    assert len(USER) == len(set(USER))


def test_the_index_has_every_user_page() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [name for name in USER if name.startswith("docs/") and name != "docs/index.md"]
    assert [name for name in pages if f"({name.removeprefix('docs/')})" not in index] == []


def test_the_faq_explains_every_gate() -> None:
    of_studies = (DOWNLOADS, FAIRNESS, PING_GATE, CAPTURE_GATE, STATES, VIDEO, INTEROP)
    names = {gate.name for gate in GATES} | {expectation.name for expectation in EXPECTATIONS}
    names |= {*gates.KIND_OF_GATE, *of_studies, PERSON, WITHDRAWN, gates.SUPERSEDED}
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", FAQ.partition("\n## Gates\n")[2], re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"\w+", row)}
    assert names - explained == set(), "explain these gates in docs/faq.md, with a remedy"
    assert explained - names == set(), "docs/faq.md has gates that are not there"


def messages(file: str) -> Iterator[str]:
    """The errors of the module `file`, with … for values."""
    for node in ast.walk(ast.parse((PROJECT / file).read_text())):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text)), *_]) if name in ERRORS:
                yield text
            case ast.Call(func=ast.Name(id=name), args=[ast.JoinedStr(values=parts), *_]) if name in ERRORS:
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)


def test_the_faq_quotes_every_refusal_of_a_measurement() -> None:
    table = FAQ.partition("\n## Refusals\n")[2].partition("\n## ")[0]
    quotes = [
        quote.rstrip(" …")
        for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
        for quote in re.findall(r'"(.+?)"', row)
    ]
    texts = [text for file in REFUSING for text in messages(file) if len(re.findall(r"\w+", text)) >= LEAST_WORDS]
    unexplained = [text for text in texts if not any(quote in text for quote in quotes)]
    assert unexplained == [], "quote a part of each in the table of refusals in docs/faq.md, with a remedy"
    source = "\n".join(
        text for file in (*REFUSING, "base/privileges.py", "browsers/registry.py") for text in messages(file)
    )
    # The activity is a value of the message.
    gone = [quote for quote in quotes if quote.removeprefix("measuring ") not in source]
    assert gone == [], "docs/faq.md quotes messages that are not there"


def test_the_cookbook_answers_thirty_questions() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", (DOCS / "cookbook.md").read_text(), re.MULTILINE)[2:]
    assert len([question for question, _ in rows if question.endswith("?")]) >= 30
    assert [question for question, answer in rows if not re.search(r"`(make|eyelevel) |\]\(", answer)] == []


def block(language: str) -> str:
    """The example in this language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / "notebooks.md").read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def test_the_example_in_python_prints_the_reports_changes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", block("python")], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    printed = dict(line.split() for line in done.stdout.splitlines()[1:5])
    (promise,) = re.findall(r"# (da2gc .*)$", block("python"), re.MULTILINE)
    assert promise == ", ".join(f"{network} {change}" for network, change in printed.items())
    # The same numbers are in the table of docs/reference.md.
    assert all(f"{change} %" in (DOCS / "reference.md").read_text() for change in printed.values())


@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed")
def test_the_example_in_r_runs(tmp_path: Path) -> None:
    (tmp_path / "example.R").write_text(block("r"))
    done = subprocess.run(["Rscript", tmp_path / "example.R"], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert re.search(r"da2gc\s.*-12\.2", done.stdout)
