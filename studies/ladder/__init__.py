"""The ladder: the components of the difference between stock TCP and stock QUIC, one setting at a time."""

from base.late import late
from base.options import Option
from films.policy import ALL_FILMS, KEPT, QUALITIES
from studies.study import Study

STUDY = Study(
    name="ladder",
    command="ladder",
    title="measure what QUIC's lead is made of, rung by rung from TCP to QUIC",
    help="""Measure sites over settings that differ by one thing each, from stock TCP to stock QUIC, all in the same
    blocks.

    --proto narrows the rungs. In the same blocks, two rungs are also measured with the link repairing its losses itself
    (arq, behind networks with loss) and with a share of the processor for the browser (slow, behind the others unless
    it is named), and QUIC in a browser that knows nothing of the servers (unknown). A campaign that exists is
    resumed.

    Example: eyelevel ladder --sites demo-news --net lte --runs 5
    """,
    campaign=late("studies.ladder.measure:campaign"),
    section=late("studies.ladder.section:section"),
    options=(
        Option("--conditions", "Conditions measured in the same blocks: arq, slow, unknown, or none.", usual="all"),
        Option("--films", "Films to keep once their metrics are computed.", choices=KEPT, usual=ALL_FILMS.kept),
        Option("--quality", "Quality of the films that are kept.", choices=QUALITIES, usual=ALL_FILMS.quality),
    ),
    validates=True,
)
