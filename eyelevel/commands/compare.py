"""`eyelevel compare`: compare two campaigns, made before and after a change."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError, Misuse
from base.files import require_replaceable
from base.terminal import plain_table, print_json, print_line, terminal
from base.words import plural
from eyelevel.arguments import begin, campaign_folder
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from analysis.runs import CampaignTable

# The exit statuses when B is worse, and, with --decide, when it is not decided. The status is 0 when B is not shown to
# be worse, 1 after an error, and 2 (click's) after a wrong option.
WORSE_STATUS, NOT_DECIDED_STATUS = 3, 4
RESULTS_OF_STATUS = {0: "no regression shown", WORSE_STATUS: "B is worse", NOT_DECIDED_STATUS: "not decided"}
COLUMNS = ("over all sites", "change", "verdict of B", "")


def share_of(text: str) -> float:
    """The share that `text` (5%) means. Raises EyelevelError."""
    try:
        value = float(text.removesuffix("%")) / 100 if text.endswith("%") else float("nan")
    except ValueError:
        value = float("nan")
    if not 0 <= value < 10:
        raise Misuse(f"--worse-than takes a percentage of at least 0 and less than 1000, as 5%, not {text!r}")
    return value


def status_in_words(status: int, command: str) -> str:
    """The exit `status` of the `command`, with a note for those who called make, which has statuses of its own."""
    is_hidden = status and "MAKELEVEL" in os.environ
    of_make = f"; make calls it an error and returns 2, so in CI call 'eyelevel {command}'" if is_hidden else ""
    return f"exit status {status}{of_make}"


def require_comparable(a: CampaignTable, b: CampaignTable) -> None:
    """Raise EyelevelError when the campaigns belong to different studies, or to a study that does not measure page load
    times."""
    from studies import STUDIES

    one, other = (campaign.document.study_name for campaign in (a, b))
    if one != other:
        kinds = (f"{c.name} is {f'of the study {name}' if name else 'of pages'}" for c, name in ((a, one), (b, other)))
        raise EyelevelError(f"{', '.join(kinds)}: only campaigns of one kind can be compared")
    study = next((study for study in STUDIES if study.name == one), None)
    if one and not study:
        raise EyelevelError(f"{a.name} and {b.name} are of the study {one}, which this version does not know")
    if study and study.no_page_times:
        raise EyelevelError(
            f"campaigns of 'make {study.command}' are not compared by page load times: {study.no_page_times}; "
            "compare their reports by eye"
        )


@click.command(params=parameters_of("compare"))
def main(first: str, second: str, worse_than: str, decide: bool, into: Path | None, as_json: bool) -> None:
    """Compare campaign B with campaign A (folders in results/, or paths). Did the change between them make typical
    loads slower, or slow or lost loads more frequent?

    Exit status: 0 if B is not shown to be worse; 1 if a campaign is missing, or they cannot be compared; 2 if an option
    is wrong; 3 if B is shown to be worse: typical loads are slower by more than --worse-than plus the canary's
    allowance, or more loads are slow or lost; 4 with --decide if B is neither shown to be worse nor to be within the
    threshold. Campaigns of a study are compared by page load times, if the study measures them.

    Example: eyelevel compare --a before --b after --worse-than 3%
    """
    threshold = share_of(worse_than)
    folders = campaign_folder(first), campaign_folder(second)
    if folders[0].resolve() == folders[1].resolve():
        raise Misuse(f"{first} and {second} are the same campaign; name two")
    into = into or folders[1] / "compare" / folders[0].resolve().name
    require_replaceable(into, "--into names another folder")
    begin(f"comparing {second} with {first}")

    from analysis import hypotheses, runs
    from analysis.campaign_changes import compare
    from analysis.report.changes import INDEX, document, sentences, tables, write
    from analysis.runs import records

    a, b = (runs.load(folder) for folder in folders)
    require_comparable(a, b)
    question = hypotheses.of_campaign(folders[0], a.document)
    change = compare(a, b, question.restricted_to(a.protocols, a.metrics), threshold)
    folder = write(change, into)
    status = WORSE_STATUS if change.is_worse else NOT_DECIDED_STATUS if decide and not change.is_decided else 0
    if as_json:
        print_json(document(change))
        sys.exit(status)
    console = terminal()
    table = plain_table(title=f"{b.name} against {a.name}")
    for name in COLUMNS:
        table.add_column(name)
    typical, shares = (records(part.texts) for part in tables(change)["over"])
    for row in typical:
        what = f"{row['protocol']} on {row['network']}, {row['metric']}"
        table.add_row(what, f"{row['change']} ({row['interval']})", row["verdict of B"], row["worse"])
    for row in shares:
        what = f"{row['protocol']} on {row['network']}, {row['loads']} loads"
        table.add_row(what, f"{row['in A']}; {row['in B']}", "", row["worse"])
    console.print(table)
    for line in sentences(change):
        print_line(console, line)
    further = plural("further difference", len(change.differences)) if len(change.differences) else ""
    print_line(console, f"page{further and f', with {further}'}: {folder / INDEX}")
    print_line(console, f"result: {RESULTS_OF_STATUS[status]} ({status_in_words(status, 'compare')})")
    sys.exit(status)
