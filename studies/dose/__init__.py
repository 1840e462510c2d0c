"""The dose: what the processor does to QUIC's gain, from loads with all and with a part of it."""

from base.late import late
from studies.study import FILM_OPTIONS, Study

PROTOCOLS = ("tcp+", "quic")

STUDY = Study(
    name="dose",
    command="dose",
    title="measure how much of QUIC's gain comes from the processor",
    help="""Measure sites with the browser and the servers at 100, 70 and 50 % of the processor, over each protocol, in
    the same blocks.

    The report has the change by QUIC at each share against the time for which threads waited for a processor, and
    extrapolated to no waiting. Shares need root and control groups. An existing campaign is resumed.

    Example: eyelevel dose --sites demo-light,demo-news --net dsl,lte --runs 10
    """,
    campaign=late("studies.dose.measure:campaign"),
    section=late("studies.dose.section:section"),
    options=FILM_OPTIONS,
    usual={"--proto": " and ".join(PROTOCOLS)},
    validates=True,
)
