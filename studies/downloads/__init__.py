"""Downloads: download times of single files (paper, Figure 2)."""

from base.late import late
from studies.downloads.defaults import DOWNLOADS, NETWORK, PROTOCOLS
from studies.study import Study

STUDY = Study(
    name="downloads",
    command="figure2",
    title="compare the servers by downloads of single files",
    help="""Measure download times of files from 1 KB to 10 MB (paper, Figure 2).

    RUNS is the number of downloads of each file over each protocol. An existing campaign is resumed.

    Example: eyelevel figure2 --proto tcp+,quic
    """,
    campaign=late("studies.downloads.measure:campaign"),
    pages=late("studies.downloads.pages:site"),
    section=late("studies.downloads.section:section"),
    usual={"--net": NETWORK, "--proto": PROTOCOLS, "--runs": str(DOWNLOADS)},
    chooses_sites=False,
    no_page_times="it measures downloads of single files, and each run records their times separately",
    decisive=("net", "proto"),
)
