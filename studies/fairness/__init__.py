"""Fairness: how flows of one protocol share a link with flows of another."""

import click

from base.late import late
from base.options import Option
from studies.fairness.defaults import AGAINST, LEAST_SECONDS, MIXES, NETWORKS, PROTOCOLS, SECONDS
from studies.study import Study

STUDY = Study(
    name="fairness",
    command="fairness",
    title="measure how flows of one protocol share a link with flows of another",
    help="""Measure how flows of one protocol share a link with flows of another, over time.

    Bulk flows start together and share the emulated network's downlink, without a browser. Each protocol of --proto
    runs separately against --against. An existing campaign is resumed.

    Example: eyelevel fairness --net fairness-10mbps --proto quic,quic+1con --mixes 1x1,1x2 --runs 10
    """,
    campaign=late("studies.fairness.measure:campaign"),
    pages=late("studies.fairness.mixes:site"),
    section=late("studies.fairness.section:section"),
    options=(
        Option("--against", "The protocol of the competing flows.", usual=AGAINST),
        Option("--mixes", "Numbers of flows of each protocol (2x1: two flows against one).", usual=MIXES),
        Option(
            "--seconds",
            "Duration of the flows (s).",
            type=click.FloatRange(min=LEAST_SECONDS),
            usual=f"{SECONDS:g}",
        ),
    ),
    usual={"--net": NETWORKS, "--proto": PROTOCOLS},
    chooses_sites=False,
    no_page_times="it loads no pages, and measures shares of a link",
    decisive=("net", "proto", "mixes"),
    validates=False,
)
