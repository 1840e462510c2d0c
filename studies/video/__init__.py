"""Video: how a player plays over each protocol."""

import click

from base.late import late
from base.options import Option
from studies.study import Study
from studies.video.defaults import LADDER_BPS, PLAYER, PLAYERS, RULES, SECONDS, TRUE, VIDEOS

STUDY = Study(
    name="video",
    command="video",
    title="measure how a video plays: its start, rebuffers and quality",
    help="""Measure how a video player does: time to the first frame, rebuffers, quality, and what was loaded.

    The video is generated when it is first needed. A campaign that exists is resumed.

    Example: eyelevel video --net lte --proto tcp+,quic --videos hd720,dynamic --runs 10
    """,
    campaign=late("studies.video.measure:campaign"),
    pages=late("studies.video.pages:site"),
    section=late("studies.video.section:section"),
    options=(
        Option(
            "--videos",
            f"Qualities ({', '.join([*LADDER_BPS, TRUE])}), which are played without another, and rules by which "
            f"the player chooses among them ({', '.join(RULES)}).",
            usual=VIDEOS,
        ),
        Option("--player", "The player: dash.js or hls.js.", choices=PLAYERS, usual=PLAYER),
        Option("--seconds", "Duration of a play (s).", type=click.IntRange(min=2), usual=str(SECONDS)),
    ),
    chooses_sites=False,
    no_page_times="it measures how a video plays after its page has loaded",
    decisive=("net", "proto", "videos"),
    validates=True,
)
