"""The orders of service that are compared, as protocols, and the pairs of them that differ in one setting."""

from dataclasses import dataclass

from analysis.statistics.hypotheses import Pair


@dataclass(frozen=True)
class Order:
    """A scheduler of quic_server (`tuning/protocols.toml`), and the protocols with it: with two emulated connections,
    which is quic_server's default, and with one."""

    scheduler: str
    of_two: str
    of_one: str


# The first one is quic_server's default.
ORDERS = (
    Order("urgency", "quic", "quic+1con+urgency"),
    Order("urgency-incremental", "quic+urgency-incremental", "quic+1con+urgency-incremental"),
    Order("urgency-first-come", "quic+urgency-first-come", "quic+1con"),
    Order("fair", "quic+fair", "quic+1con+fair"),
    Order("first-come", "quic+first-come", "quic+1con+first-come"),
)
# NGINX, whose kernel buffers so little that the server decides the order.
NGINX = "tcp+lowat"
PROTOCOLS = (*(order.of_two for order in ORDERS), *(order.of_one for order in ORDERS), NGINX)
SCHEDULERS = {name: order.scheduler for order in ORDERS for name in (order.of_two, order.of_one)}

# Each order against the default one, with as many emulated connections; and one connection against two.
PAIRS = (
    *(Pair(ORDERS[0].of_two, order.of_two) for order in ORDERS[1:]),
    *(Pair(ORDERS[0].of_one, order.of_one) for order in ORDERS[1:]),
    *(Pair(order.of_two, order.of_one) for order in ORDERS),
)
