"""Fairness: how flows of one protocol share a link with flows of another."""

import click

from base.late import late
from base.options import Option
from studies.fairness.defaults import AGAINST, LEAST_SECONDS, MIXES, SECONDS
from studies.study import Study

STUDY = Study(
    name="fairness",
    command="fairness",
    title="measure how flows of one protocol share a link with flows of another",
    help="""Measure which share of a link flows of one protocol get beside flows of another, over time.

    Bulk flows begin together and share the emulated network's downlink; no browser takes part. --proto are the
    protocols whose share is asked for, each against --against by itself. A campaign that exists is resumed.

    Example: eyelevel fairness --net fairness-10mbps --proto quic,quic+1con --mixes 1x1,1x2 --runs 10
    """,
    campaign=late("studies.fairness.measure:campaign"),
    pages=late("studies.fairness.mixes:site"),
    section=late("studies.fairness.section:section"),
    options=(
        Option("--against", "The protocol of the other flows.", usual=AGAINST),
        Option("--mixes", "How many flows against how many others (2x1).", usual=MIXES),
        Option(
            "--seconds",
            "Duration of the flows (s).",
            type=click.FloatRange(min=LEAST_SECONDS),
            usual=f"{SECONDS:g}",
        ),
    ),
    chooses_sites=False,
    no_page_times="it loads no page, and measures which share of a link flows get",
    decisive=("net", "proto", "mixes"),
    validates=False,
)
