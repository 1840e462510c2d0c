"""Fidelity: how far replays of a page are from live loads of it, on the network of the live loads."""

from base.late import late
from studies.study import Study

STUDY = Study(
    name="fidelity",
    command="fidelity",
    title="measure how far replays are from the live loads of their pages",
    help="""Replay sites behind the network that their live loads went over, and say how far each metric is from theirs.

    Sites have live loads when 'eyelevel record --live 5 --net NETWORK' has made them, and one when they are of an
    archive (HAR) that has the time of the load event. --net names the network of those that do not say theirs. Each
    site is replayed over those of --proto (tcp+ and quic unless given) that speak the version of HTTP that most of its
    live requests used. A campaign that exists is resumed.

    Example: eyelevel fidelity --sites gnu.org --net cable --runs 10
    """,
    campaign=late("studies.fidelity.measure:campaign"),
    section=late("studies.fidelity.section:section"),
    # Only sites whose live loads do not name their network need --net.
    decisive=("sites",),
    validates=True,
)
