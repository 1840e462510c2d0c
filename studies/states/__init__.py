"""States: the behaviour of congestion control over time while a page loads."""

from base.late import late
from studies.study import Study

STUDY = Study(
    name="states",
    command="states",
    title="log the behaviour of congestion control during page loads",
    help="""Log the behaviour of congestion control during page loads: windows, round-trip times, losses and states
    over time.

    An existing campaign is resumed.

    Example: eyelevel states --sites demo-light --net lte --proto tcp+,quic --runs 3
    """,
    campaign=late("studies.states.measure:campaign"),
    section=late("studies.states.section:section"),
)
