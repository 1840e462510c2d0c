"""Video: playback over each protocol."""

import click

from base.late import late
from base.options import Option
from studies.study import Study
from studies.video.defaults import LADDER_BPS, NETWORKS, PLAYER, PLAYERS, PROTOCOLS, RULES, SECONDS, TRUE, VIDEOS

STUDY = Study(
    name="video",
    command="video",
    title="measure video playback: startup, rebuffering and quality",
    help="""Measure video playback: time to the first frame, rebuffering, quality, and the data loaded.

    The video is generated on first use. An existing campaign is resumed.

    Example: eyelevel video --net lte --proto tcp+,quic --videos hd720,dynamic --runs 10
    """,
    campaign=late("studies.video.measure:campaign"),
    pages=late("studies.video.pages:site"),
    section=late("studies.video.section:section"),
    options=(
        Option(
            "--videos",
            f"Fixed qualities ({', '.join([*LADDER_BPS, TRUE])}), and rules by which the player adapts the quality "
            f"({', '.join(RULES)}).",
            usual=VIDEOS,
        ),
        Option("--player", "The video player.", choices=PLAYERS, usual=PLAYER),
        Option("--seconds", "Duration of playback (s).", type=click.IntRange(min=2), usual=str(SECONDS)),
    ),
    usual={"--net": NETWORKS, "--proto": PROTOCOLS},
    chooses_sites=False,
    no_page_times="it measures video playback, which follows the load of its page",
    decisive=("net", "proto", "videos"),
    validates=True,
)
