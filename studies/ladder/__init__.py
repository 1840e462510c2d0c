"""The ladder: the components of the difference between stock TCP and stock QUIC, one thing at a time."""

from base.late import late
from base.options import Option
from studies.study import FILM_OPTIONS, Study

RUNS = 5

STUDY = Study(
    name="ladder",
    command="ladder",
    title="measure the components of QUIC's lead over TCP, step by step",
    help="""Measure sites over a ladder of settings from stock TCP to stock QUIC, all in the same blocks. Each rung
    differs from the previous one in one aspect.

    --proto selects rungs. The same blocks include three conditions. Two rungs are also measured on a link that
    retransmits lost packets itself (arq; on networks with loss), and with the browser limited to a share of the
    processor (slow; by default only on networks without loss). The highest rung is also measured in a browser that does
    not know the servers (unknown). An existing campaign is resumed.

    Example: eyelevel ladder --sites demo-news --net lte --runs 5
    """,
    campaign=late("studies.ladder.measure:campaign"),
    section=late("studies.ladder.section:section"),
    options=(
        Option("--conditions", "Conditions measured in the same blocks: arq, slow, unknown, or none.", usual="all"),
        *FILM_OPTIONS,
    ),
    usual={"--proto": "all rungs", "--runs": str(RUNS)},
    validates=True,
)
