"""Downloads: how long single files take from the servers (paper, Figure 2)."""

from base.late import late
from studies.study import Study

STUDY = Study(
    name="downloads",
    command="figure2",
    title="compare the servers themselves: downloads of single files",
    help="""Measure how long files from 1 KB to 10 MB take from the servers (paper, Figure 2).

    RUNS is how often each file is downloaded over each protocol. A campaign that exists is resumed.

    Example: eyelevel figure2 --proto tcp+,quic
    """,
    campaign=late("studies.downloads.measure:campaign"),
    pages=late("studies.downloads.pages:site"),
    section=late("studies.downloads.section:section"),
    chooses_sites=False,
    no_page_times="it measures single files, whose times each run keeps for itself",
    decisive=("net", "proto"),
)
