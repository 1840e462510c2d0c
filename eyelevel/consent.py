"""The user's consent to a long campaign.

A campaign that takes more than a day, and whose sites, networks or protocols the user did not name, begins only if the
user agrees. A mistyped `CAMPAIGN=` would otherwise begin a new campaign of all sites over all networks and protocols.
`eyelevel.measuring` asks for this consent in all commands that measure, those of studies included.
"""

import sys
from collections.abc import Callable, Sequence

import click
from rich.console import Console

from base.errors import EyelevelError
from base.terminal import print_line
from base.words import in_bytes, in_words, plural
from eyelevel.arguments import similar_campaign
from eyelevel.estimate import estimate
from eyelevel.measuring_options import MeasuringOptions
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import Forecast

DAY_S = 86_400


def answer_to(question: str, console: Console) -> str:
    """Show `question`, and return the key that the user presses. Raises EyelevelError if there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EyelevelError(f"{question}; to begin it anyway: YES=1 (--yes)")
    console.print(
        f"{question}.\nPress y to begin it, any other key to leave it: ", markup=False, soft_wrap=True, end=""
    )
    key = click.getchar()
    console.print()
    return key


def require_consent(
    campaign: Campaign,
    options: MeasuringOptions,
    console: Console,
    ask: Callable[[str, Console], str] = answer_to,
) -> None:
    """Ask whether to begin `campaign`, if it takes more than a day and the user did not agree otherwise.

    The user agrees by naming all variables of the campaign or by the `options` (`MeasuringOptions.unnamed`). `ask`
    returns the key that answers a question. Raises EyelevelError when the answer is no, or when nobody can be asked.
    """
    if not options.unnamed or options.agreed or options.budget_s is not None:
        return
    similar = similar_campaign(campaign.folder)
    expected = estimate(campaign).forecast
    if expected.seconds <= DAY_S:
        if similar:
            note = f"note: {campaign.folder.name} is a new campaign; did you mean {similar}?"
            print_line(console, note)
        return
    other = f"; did you mean the campaign {similar}?" if similar else ""
    if ask(description(campaign, options.unnamed, expected) + other, console) not in ("y", "Y"):
        raise EyelevelError(f"campaign {campaign.folder.name} was not begun; nothing was written")


def description(campaign: Campaign, unnamed: Sequence[str], expected: Forecast) -> str:
    """The size of the campaign, how long it would take, and which variables decide it."""
    sizes = ", ".join(
        plural(noun, len(things))
        for noun, things in (("site", campaign.sites), ("network", campaign.networks), ("protocol", campaign.protocols))
    )
    at_most = "at most " if campaign.auto else ""
    return (
        f"new campaign {campaign.folder.name} would take {at_most}about {in_words(expected.seconds)} and "
        f"{in_bytes(expected.bytes)} ({sizes}, {plural('run', campaign.runs)} of each), and {' and '.join(unnamed)} "
        f"{'was' if len(unnamed) == 1 else 'were'} not named"
    )
