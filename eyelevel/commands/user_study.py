"""`eyelevel user-study`: show a campaign's films to people, and collect their votes."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path

import click

from base.errors import EyelevelError
from base.files import require_writable
from base.ownership import give_to_caller
from eyelevel.arguments import begin, campaign_folder
from eyelevel.next_step import suggest
from eyelevel.options import parameters_of


@click.group()
def main() -> None:
    """Show people the films of a campaign, collect their votes, and report them next to its metrics.

    Example: eyelevel user-study write first
    """


@main.command(params=parameters_of("user-study write"))
def write(campaign: str, file: Path | None) -> None:
    """Write the user study of CAMPAIGN (a folder in results/, or a path) into its folder user-study/.

    Example: eyelevel user-study write first --study my-study.toml
    """
    folder = campaign_folder(campaign)
    require_writable(folder, "copy the campaign to a folder of yours")
    begin(f"reading {folder}")

    from analysis import hypotheses
    from analysis.runs import load
    from analysis.user_study import settings
    from analysis.user_study.clips import MEASURED, read_key
    from analysis.user_study.kit import SITE, VOTES, write_kit

    wanted = settings.load(file)
    table = load(folder)
    declared = hypotheses.of_campaign(folder, table.document).restricted_to(table.protocols, table.metrics)

    def watch(done: int, of: int) -> None:
        click.echo(f"\rclip {done} of {of}", nl=done == of, err=True)

    into = write_kit(table, declared.family, wanted, watch if sys.stderr.isatty() else lambda done, of: None)
    clips = read_key(into).clips
    for part in wanted.parts:
        of_part = [clip for clip in clips if clip.part == part]
        click.echo(
            f"{part}: {sum(clip.kind == MEASURED for clip in of_part)} clips, {len(of_part)} with controls and practice"
        )
    if not wanted.experimenter:
        click.echo("no experimenter is named, so the first page says that this is a trial; --study names one")
    click.echo(f"page for participants: {into / SITE}; put votes into {into / VOTES}")
    suggest(shlex.join(["eyelevel", "user-study", "serve", str(folder)]))


@main.command(params=parameters_of("user-study serve"))
def serve(folder: Path, host: str, port: int) -> None:
    """Serve the user study in FOLDER (the folder of a kit or of its campaign), and keep the votes.

    Example: eyelevel user-study serve results/try
    """
    from analysis.user_study.clips import KEY
    from analysis.user_study.kit import VOTES
    from analysis.user_study.server import Collector, StudyServer
    from dataset.table import USER_STUDY

    kit = folder if (folder / KEY).exists() else campaign_folder(str(folder)) / USER_STUDY
    require_writable(kit / VOTES, "copy the campaign to a folder of yours")
    collector = Collector(kit)
    try:
        server = StudyServer((host, port), collector)
    except (OSError, OverflowError) as error:
        raise EyelevelError(f"cannot listen at {host}, port {port}: {error}") from None
    try:
        with suppress(KeyboardInterrupt), server:
            address = f"http://{host}:{server.server_address[1]}/"
            click.echo(f"{address} is the study; votes go to {collector.file}; Ctrl-C stops it")
            server.serve_forever()
    finally:
        give_to_caller(collector.file.parent)
