"""Fidelity: the errors of replays compared with live loads of the same pages on the same network."""

from base.late import late
from studies.study import Study

STUDY = Study(
    name="fidelity",
    command="fidelity",
    title="measure the errors of replays compared with live loads",
    help="""Replay sites on the network of their live loads, and report the error of each metric.

    'eyelevel record --live 5 --net NETWORK' records sites with live loads. A site that was imported from a HAR file has
    one live load if the file has the time of the load event. --net names the network of live loads that do not record
    theirs. Each site is replayed over those protocols of --proto that speak the HTTP version of most of its live
    requests. An existing campaign is resumed.

    Example: eyelevel fidelity --sites gnu.org --net cable --runs 10
    """,
    campaign=late("studies.fidelity.measure:campaign"),
    section=late("studies.fidelity.section:section"),
    usual={"--sites": "all with live loads", "--net": "that of the live loads", "--proto": "tcp+,quic"},
    # Only sites whose live loads do not name their network need --net.
    decisive=("sites",),
    validates=True,
)
