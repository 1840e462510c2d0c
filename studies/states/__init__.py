"""States: the behaviour of congestion control over time while a page loads."""

from base.late import late
from studies.study import Study

STUDY = Study(
    name="states",
    command="states",
    title="log what congestion control does while a site is loaded",
    help="""Log what congestion control does while sites are loaded: windows, round-trip times, losses and states over
    time.

    A campaign that exists is resumed.

    Example: eyelevel states --sites demo-light --net lte --proto tcp+,quic --runs 3
    """,
    campaign=late("studies.states.measure:campaign"),
    section=late("studies.states.section:section"),
)
