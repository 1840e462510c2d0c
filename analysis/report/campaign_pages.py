"""The pages of a campaign's report: the answer, the paper, and everything."""

import shlex
from collections.abc import Mapping, Sequence, Set
from typing import Any

from analysis.balance import place_test
from analysis.findings import Findings
from analysis.report.conclusion import conclusion
from analysis.report.first_screen import (
    TO_SHOW,
    deciding,
    has_wide_intervals,
    lines,
    qualifications,
    question,
    sentences,
    success,
)
from analysis.report.level_ground import level_ground
from analysis.report.lines import grouped
from analysis.report.page import environment, identity, page_basics, styles
from analysis.report.run_files import Links
from analysis.report.section import ANSWER, EVERYTHING, PAPER, Section
from analysis.report.sections.films import FILMS
from analysis.report.sections.measured import validation_summary
from analysis.report.sentences import remarks, scope, warnings
from analysis.report.warnings import of_balance
from analysis.runs import CampaignTable
from analysis.statistics.planning import POWER
from analysis.text import label, level, listing
from dataset.package import is_package
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import browser_and_device

PAGES = {ANSWER: "Answer", PAPER: "The paper", EVERYTHING: "Everything"}
TEMPLATES = {ANSWER: "answer.html.j2", PAPER: "paper.html.j2", EVERYTHING: "everything.html.j2"}


def campaign_pages(
    findings: Findings, sections: Sequence[Section], families: Set[str], pictures: Mapping[str, str], links: Links
) -> dict[str, str]:
    """The pages of a campaign's report: the name of its file → its HTML. `sections` are all, in their order.

    `families`: the names of tables that have a part on the declared hypotheses; `pictures`: name of a figure → its URL;
    `links` makes the links to files of runs.
    """
    templates, campaign = environment(pictures, links), findings.campaign
    of_page = {page: [one for one in sections if one.page == page and one.has_content] for page in PAGES}
    names = {page: title for page, title in PAGES.items() if page == ANSWER or of_page[page]}
    common = page_basics(campaign.document) | {
        "name": campaign.name,
        "identity": identity(campaign),
        "pages": names,
        "findings": findings,
        "scope": scope(findings),
        "families": families,
        "is_balanced": not of_balance(findings["pair_balance"], place_test(campaign)),
    }
    values = {page: {"sections": of_page[page]} for page in names} | {ANSWER: _answer_values(findings, sections)}
    return {page: templates.get_template(TEMPLATES[page]).render(**common | values[page]) for page in names}


def _answer_values(findings: Findings, sections: Sequence[Section]) -> dict[str, Any]:
    """The values that only the page of the answer shows."""
    campaign, exclusions = findings.campaign, findings["exclusions"]
    compared = {label(pair.compared) for pair in findings.declared.family}
    faster = f"{listing([*compared])} faster" if len(compared) == 1 else "faster"
    reasons = exclusions.groupby("gate")["excluded"].sum().sort_values(ascending=False, kind="stable")
    return {
        "css": styles("page.css", "answer.css"),
        "sentences": sentences(findings),
        "confidence": level(findings.declared.confidence),
        "groups": grouped(lines(findings), "protocols", faster),
        "warnings": [*qualifications(findings), *warnings(findings)],
        "films": next((section for section in sections if section.name == FILMS and section.figures), None),
        "sections_with_text": [section for section in sections if section.paragraphs],
        "deciding": deciding(findings),
        "more": _command_for_more(findings),
        "to_show": TO_SHOW,
        "power": POWER,
        "question": question(findings),
        "tests": findings.declared.family_size(len(campaign.networks)),
        "is_wide": has_wide_intervals(findings),
        "success": success(findings["success_rates"], findings["loss_bounds"]),
        "excluded": f"{listing([f'{name} ({number})' for name, number in reasons.items()])}." if len(reasons) else "",
        "remarks": remarks(findings),
        "basis": _basis(campaign),
        "level_ground": level_ground(campaign, findings.declared.family),
    }


def _command_for_more(findings: Findings) -> str:
    """The command for the runs that would decide what is open; empty without one, and for a package."""
    campaign = findings.campaign
    runs = None if is_package(campaign.folder) else conclusion(findings).runs
    return f"make campaign CAMPAIGN={shlex.quote(campaign.name)} RUNS={runs}" if runs else ""


def _basis(campaign: CampaignTable) -> dict[str, str]:
    """The pages, programs and machine that a result rests on, for readers."""
    machine = campaign.document.machine
    names = ("host", "cpu", "cpus", "system")
    facts = {
        "pages": ", ".join(campaign.settings.sites),
        "browsers": ", ".join(_versions_of_browsers(campaign)),
        "validation": validation_summary(campaign),
        "machine": ", ".join(f"{machine[name]}{' cores' * (name == 'cpus')}" for name in names if name in machine),
    }
    return {name: text for name, text in facts.items() if text}


def _versions_of_browsers(campaign: CampaignTable) -> list[str]:
    """The version of each browser as it prints it, after the browser's name if a user gave it another."""
    versions = campaign.document.versions
    names = dict.fromkeys(browser_and_device(name)[0] for name in campaign.browsers or (DEFAULT_BROWSER,))
    # The program of Firefox is called firefox-esr.
    known = {name: str(versions.get(name) or versions.get(f"{name}-esr", "")) for name in names}
    return [text if name in text.lower() else f"{name}: {text}" for name, text in known.items() if text]
