"""`eyelevel status`: show the progress of a campaign, also while it runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from base.terminal import print_json, terminal
from base.words import clock_in, in_bytes, in_words, plural
from dataset.package import is_package
from dataset.plan import never_enough
from dataset.table import require_document
from eyelevel.arguments import campaign_folder
from eyelevel.next_step import continuation, make_line
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from rich.console import Console


@click.command(params=parameters_of("status"))
def main(campaign: str, as_json: bool) -> None:
    """Show the progress of CAMPAIGN (a folder in results/, or a path).

    Example: eyelevel status first
    """

    from eyelevel.study_command import command_of
    from measure.campaign.status import TABLE_LINES, last_rejections, rejecting_gates, rejections, status, troubles

    folder = campaign_folder(campaign)
    document = require_document(folder)
    is_auto = document.settings.auto
    enough = never_enough
    if is_auto:
        from eyelevel.runs import enough_runs

        enough = enough_runs
    now = status(folder, enough)
    counts = {"planned": now.planned, "done": now.done, "left": len(now.open_runs), "given_up": now.given_up}
    if is_auto:
        counts["saved"] = now.saved
    if as_json:
        rejected = Counter(row.gate for row in now.rows if not row.valid)
        seconds = now.expected.seconds if now.expected else None
        state = {
            "running": now.running,
            "lanes": now.lanes.count,
            "at_once": now.lanes.at_once,
            "rejected": rejected,
            "seconds_left": seconds,
        }
        print_json({**counts, **state})
        return
    console = terminal()
    screen = Screen(console)
    runs = f"{now.done} of {plural('run', now.planned)} done, {len(now.open_runs)} left, {now.given_up} given up"
    screen.say(f"{runs}; {'running' if now.running else 'not running'}{now.lanes}")
    if now.open_runs and now.expected:
        end = f"done {clock_in(now.expected.seconds)}{'' if now.running else ' if resumed now'}"
        screen.say(f"{end}, in about {in_words(now.expected.seconds)}; {in_bytes(now.expected.bytes)} more")
    if now.saved:
        from analysis.stopping import saved_line, saving

        screen.say(saved_line(saving(folder, enough(folder))))
    for line in troubles(now, folder):
        screen.say(f"problem: {line}", style="yellow", most_lines=2)
    for run in now.current if now.running else ():
        screen.say(f"now: {run}")
    if not now.running and (not is_package(folder) if now.open_runs else now.done):
        resume = continuation(command_of(document.study_name), folder)
        screen.say(f"next: {resume if now.open_runs else make_line('report', {'CAMPAIGN': campaign})}")
    if not any(not row.valid for row in now.rows):
        screen.say(f"none of {plural('attempt', len(now.rows))} rejected")
        return
    gates = rejecting_gates(now.rows)
    # Each gate takes two lines: a row in the table and its last reason.
    visible = gates if not screen.is_limited else gates[: max(1, (screen.lines_left - TABLE_LINES - 1) // 2)]
    console.print(rejections(now.rows, visible, console.width))
    more = len(gates) - len(visible)
    room = screen.lines_left - TABLE_LINES - len(visible) - bool(more)
    for line in last_rejections(now.rows, visible):
        screen.say(line, most_lines=max(1, room // len(visible)))
    if more:
        screen.say(f"{plural('more gate', more)} rejected attempts: '| less' shows all")


class Screen:
    """Prints lines, and counts how many more fit on the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.is_limited = console.is_terminal
        # The prompt needs one line.
        self.lines_left = console.height - 1

    def say(self, text: str, style: str = "", most_lines: int | None = None) -> None:
        """Print `text`.

        For other programs it is one line. On a terminal it is wrapped, and lines beyond `most_lines` are left out.
        """
        from rich.containers import Lines
        from rich.text import Text

        line = Text(text, style=style)
        if not self.is_limited:
            self._console.print(line, soft_wrap=True)
            return
        parts = line.wrap(self._console, self._console.width)
        if most_lines and len(parts) > most_lines:
            last = Text(" ".join(part.plain.rstrip() for part in parts[most_lines - 1 :]), style=style)
            last.truncate(self._console.width, overflow="ellipsis")
            parts = Lines([*parts[: most_lines - 1], last])
        self.lines_left -= len(parts)
        self._console.print(parts)
