"""The queues of a network's links, as in `networks.toml`: kinds, their arguments, and their longest lengths.

Kinds have the names and the behaviour of the shells' (shells/src/queue), whose values include their units.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

# The kind of queue unless a network names another.
DROP_TAIL = "droptail"
# The limits of a queue; the shortest applies.
LIMITS = ("limit_ms", "limit_bytes", "limit_packets", "limit_bdp")
# Each kind and its arguments besides a limit: our key → the shells' argument.
CODEL = {"target_ms": "target", "interval_ms": "interval", "ecn": "ecn"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "infinite": {},
    DROP_TAIL: {},
    "drophead": {},
    "codel": CODEL,
    "pie": {"qdelay_ref_ms": "qdelay_ref", "max_burst_ms": "max_burst", "ecn": "ecn"},
    "fq_codel": {**CODEL, "flows": "flows"},
}
# The kinds without a limit, and those that must have one.
UNLIMITED, LIMITED = ("infinite",), (DROP_TAIL, "drophead")
# The most flows of fq_codel (shells/src/queue/fq_codel.rs).
MOST_FLOWS = 65_536
# The bytes of a full packet.
PACKET_BYTES = 1500


@dataclass(frozen=True)
class Queue:
    """The queue of one direction of a link. A field that is None has the default value in the RFC of its kind.

    `limit_bdp` is in bandwidth-delay products, at the network's smallest round-trip time. `ecn`: whether packets that
    allow it are marked instead of dropped (RFC 3168). CoDel: RFC 8289, PIE: RFC 8033, FQ-CoDel: RFC 8290.
    """

    kind: str
    limit_ms: float | None = None
    limit_bytes: int | None = None
    limit_packets: int | None = None
    limit_bdp: float | None = None
    target_ms: float | None = None
    interval_ms: float | None = None
    qdelay_ref_ms: float | None = None
    max_burst_ms: float | None = None
    ecn: bool | None = None
    flows: int | None = None

    @property
    def has_limit(self) -> bool:
        """Whether the queue has its own limit."""
        return any(getattr(self, limit) is not None for limit in LIMITS)

    def length_bytes(self, rate_mbps: float, rtt_ms: float) -> int | None:
        """The most bytes that may wait; None if no limit is in bytes or in time."""
        spans_ms = [self.limit_ms, None if self.limit_bdp is None else self.limit_bdp * rtt_ms]
        sizes = [round(rate_mbps * 1e3 / 8 * span_ms) for span_ms in spans_ms if span_ms is not None]
        return min([*sizes, *([] if self.limit_bytes is None else [self.limit_bytes])], default=None)

    def longest_wait_ms(self, rate_mbps: float, rtt_ms: float) -> float | None:
        """The longest time that a packet may wait at this rate; None if nothing limits it."""
        sizes = [self.length_bytes(rate_mbps, rtt_ms), self.limit_packets and self.limit_packets * PACKET_BYTES]
        known = [size for size in sizes if size is not None]
        return min(known) * 8 / rate_mbps / 1e3 if known else None

    def arguments(self, rate_mbps: float, rtt_ms: float) -> list[str]:
        """The queue's arguments in the format of the shells, for a link of this rate."""
        values = {"bytes": self.length_bytes(rate_mbps, rtt_ms), "packets": self.limit_packets}
        values |= {shells: getattr(self, key) for key, shells in KINDS[self.kind].items()}
        return [f"{name}={_text(value)}" for name, value in values.items() if value not in (None, False)]

    def check(self, where: str) -> None:
        """Raise ValueError with one line that begins with `where` when the shells do not support such a queue."""
        if self.kind not in KINDS:
            raise ValueError(f"{where}.kind must be one of {', '.join(KINDS)}, not {self.kind!r}")
        allowed = {"kind", *(() if self.kind in UNLIMITED else LIMITS), *KINDS[self.kind]}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and name not in allowed:
                raise ValueError(f"{where}: the kind {self.kind} has no {name}; it has {_listing(allowed)}")
            if name != "ecn" and isinstance(value, int | float) and value <= 0:
                raise ValueError(f"{where}.{name} must be more than 0")
        if self.flows is not None and self.flows > MOST_FLOWS:
            raise ValueError(f"{where}.flows must be at most {MOST_FLOWS}")

    def __str__(self) -> str:
        given = {name: getattr(self, name) for name in (field.name for field in fields(self)) if name != "kind"}
        words = [f"{name} {_text(value)}" for name, value in given.items() if value not in (None, False, True)]
        return " ".join([self.kind, *words, *(["ecn"] if self.ecn else [])])


def _text(value: float) -> str:
    return f"{value:d}" if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _listing(names: set[str]) -> str:
    order = [field.name for field in fields(Queue)]
    return ", ".join(sorted(names - {"kind"}, key=order.index)) or "none"
