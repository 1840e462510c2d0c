"""States: what congestion control does while a page loads, over time."""

from servers.qlog import SUFFIX
from studies.states import section
from studies.states.measure import STUDY as NAME
from studies.states.measure import StatesMethod, require_account
from studies.study import Measurement, Request, Study, study_campaign


def campaign(request: Request) -> Measurement:
    """What `request` asks to be measured. Raises EyelevelError."""
    chosen = study_campaign(request, NAME, StatesMethod())
    for protocol in chosen.protocols.values():
        require_account(protocol)
    return Measurement(chosen, summary=lambda: [f"logged: {chosen.folder}; qvis opens the {SUFFIX} files"])


STUDY = Study(
    name=NAME,
    command="states",
    title="log what congestion control does while a site is loaded",
    help="""Log what congestion control does while sites are loaded: windows, round-trip times, losses and states over
    time.

    A campaign that exists goes on where it was.

    Example: eyelevel states --site demo-light --net lte --proto tcp+,quic --runs 3
    """,
    campaign=campaign,
    section=section.section,
)
