"""The order of service: what the order in which a QUIC server sends its responses changes for pages."""

from base.late import late
from studies.study import FILM_OPTIONS, Study

STUDY = Study(
    name="order",
    command="order",
    title="measure what a QUIC server's order of service changes for pages",
    help="""Measure sites with each order in which quic_server can send its responses (RFC 9218), with one and with two
    emulated connections, in the same blocks.

    The report has the changes of LCP, FCP and SI, and which response's data arrived when. NGINX's order stands next to
    them; name the protocols of other servers with --proto. An existing campaign is resumed.

    Example: eyelevel order --sites demo-news --net lte --runs 10
    """,
    campaign=late("studies.order.measure:campaign"),
    section=late("studies.order.section:section"),
    pages=late("studies.order.pages:site"),
    options=FILM_OPTIONS,
    usual={"--proto": "all orders, and tcp+lowat"},
    validates=True,
)
