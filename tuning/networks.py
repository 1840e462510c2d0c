"""Access networks: `networks.toml` as values, and what follows from them for each direction."""

import gzip
import hashlib
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuning.conditions import DELAY, GZIP_MAGIC, LOSS, RATE, Conditions, is_conditions, read_conditions
from tuning.hops import Hop
from tuning.queues import DROP_TAIL, LIMITED, PACKET_BYTES, UNLIMITED, Queue
from tuning.settings import DERIVED, Reader, Table

FILENAME = "networks.toml"

# Which directions lose packets.
BOTH, UP, DOWN = "both", "up", "down"

# What a grid of networks may vary: every key whose value is no list. With the unit that the value has in a network's
# name; a table's keys are those of `up_queue` and its like.
GRID_UNITS = {
    **{"up_mbps": "mbps", "down_mbps": "mbps", "min_rtt_ms": "ms", "up_delay_ms": "ms-up", "queue_ms": "queue"},
    **{"loss": "loss", "up_loss": "up-loss", "down_loss": "down-loss", "loss_on": "", "burst_packets": "burst"},
    **{"retransmit_ms": "arq", "retransmit_tries": "tries", "retransmit_reorder": "arq-reorder"},
    **{"jitter_ms": "jitter", "reorder": "reorder", "quiet_ms": "quiet", "up_trace": "", "down_trace": ""},
    **{"up_conditions": "", "down_conditions": ""},
    **{
        f"{direction}_queue.{key}": unit
        for direction in (UP, DOWN)
        for key, unit in {
            **{"kind": "", "limit_ms": "queue", "limit_bytes": "bytes", "limit_packets": "packets", "limit_bdp": "bdp"},
            **{"target_ms": "target", "interval_ms": "interval", "qdelay_ref_ms": "ref", "max_burst_ms": "burst-ms"},
            **{"ecn": "ecn", "flows": "flows"},
        }.items()
    },
    **{
        f"gilbert_elliott.{key}": unit
        for key, unit in {"good_to_bad": "p", "bad_to_good": "r", "loss_in_bad": "bad", "loss_in_good": "good"}.items()
    },
    **{
        f"hop.{key}": unit
        for key, unit in {
            **{"kind": "", "min_rtt_ms": "ms-far", "up_mbps": "mbps-up-far", "down_mbps": "mbps-far"},
            **{"queue_ms": "queue-far", "loss": "loss-far", "jitter_ms": "jitter-far", "congestion_control": ""},
            **{"initial_window_packets": "iw-hop"},
        }.items()
    },
    **{
        f"{direction}on_off.{key}": unit
        for direction in ("", "up_", "down_", "cross_traffic_")
        for key, unit in {"on_s": "on", "off_s": "off", "periodic": "periodic"}.items()
    },
}

# What one line of a Mahimahi trace lets through (Winstein et al.). The shells have it in Rust (shells/src).
TRACE_LINE_BYTES = 1504

# What a network is called in another browser than the first of a campaign: `lte@firefox`. No network's own name has it.
IN_BROWSER = "@"

# The kinds of background flows (`tuning.cross_traffic`): the kernel's TCP by its congestion control, or QUIC with one.
QUIC_FLOW = "quic-"
CROSS_TRAFFIC = ("cubic", "bbr", "reno", "quic-cubic")
# Each has addresses of its own (`replay.cross_traffic`).
MOST_FLOWS = 32
# A full segment of TCP over Ethernet.
SEGMENT_BYTES = 1460
# The shortest quiet time that was studied (docs/quiet-times.md).
LEAST_QUIET_MS = 1000
# Shorter times on and off would only keep the emulator busy.
LEAST_ON_OFF_S = 1e-4
# The rate to reckon with where a network has no limit.
UNLIMITED_MBPS = 1000.0


@dataclass(frozen=True)
class GilbertElliott:
    """Losses that come in bursts (Gilbert 1960, Elliott 1963): the network is good or bad, its state may change with
    each packet, and the probability of loss depends on the state. All of them are probabilities."""

    good_to_bad: float
    bad_to_good: float
    loss_in_bad: float = 1
    loss_in_good: float = 0

    @property
    def bad_share(self) -> float:
        """The share of packets that meet a bad network."""
        return self.good_to_bad / (self.good_to_bad + self.bad_to_good)

    @property
    def loss(self) -> float:
        """The share of packets that are lost."""
        return self.bad_share * self.loss_in_bad + (1 - self.bad_share) * self.loss_in_good

    @property
    def loss_after_loss(self) -> float:
        """The share of packets that are lost of those behind a lost one."""
        was_bad = self.bad_share * self.loss_in_bad / self.loss
        bad = was_bad * (1 - self.bad_to_good) + (1 - was_bad) * self.good_to_bad
        return bad * self.loss_in_bad + (1 - bad) * self.loss_in_good

    @property
    def memory(self) -> float:
        """How much of the state is left after a packet: 0 of none."""
        return 1 - self.good_to_bad - self.bad_to_good

    @classmethod
    def bursts(cls, loss: float, packets: float) -> "GilbertElliott":
        """Bursts of so many packets on average, all of which are lost, that lose this share of all packets."""
        return cls(good_to_bad=loss / (1 - loss) / packets, bad_to_good=1 / packets)


@dataclass(frozen=True)
class OnOff:
    """How long a direction is on and off in turn; what comes while it is off is lost. It begins on.

    The times are drawn from exponential distributions with these means, or always the same if `periodic`.
    """

    on_s: float
    off_s: float
    periodic: bool = False

    @property
    def period_s(self) -> float:
        """From one beginning to the next, on average."""
        return self.on_s + self.off_s


@dataclass(frozen=True)
class Network:
    """One access network (paper, Table 2). Rates in Mbit/s, times in ms, loss as a round-trip probability.

    Both directions share the loss, or `loss_on` names the one that has it. In place of it, `up_loss` and `down_loss`
    are probabilities of one direction each, and `gilbert_elliott` is that of each direction which loses packets; the
    loss then follows from them. `burst_packets`: losses come in bursts of so many on average.

    Half of the round-trip time is each direction's, or `up_delay_ms` is the uplink's share of it.

    Links have drop-tail queues for `queue_ms` at their rate; `up_queue` and `down_queue` are other queues, for which
    `queue_ms` is the limit where they have none of their own.

    `on_off` is that of both directions, off at the same instants; `up_on_off` and `down_on_off` of one alone.

    A direction's rate is constant, or follows a trace in Mahimahi's format, a file; without either, it has no limit.
    Of a trace, the rate is its mean. What `up_conditions` and `down_conditions` say of delay and loss over time, files
    of `tuning.conditions`, comes on top of `min_rtt_ms`, which is the least round-trip time then, and of other losses.
    Such a file may be a trace, too, if it has rates.

    With `retransmit_ms`, the link repeats what it would lose until it arrives, in order, so much later for each try
    that fails (ARQ, RFC 3366); after `retransmit_tries` tries, the first included, it is lost. With
    `retransmit_reorder`, what follows does not wait for it.

    `drop_up_packets` and `drop_up_at_ms` are lost for good, whatever else happens: the packets of these numbers, from
    1, and the first at or after these times since the emulator began. Both are of IP packets as on a wire, at the
    client's end of the network.

    `cross_traffic` are background flows that others send through it, by their kind, to addresses next to the client's;
    `up_cross_traffic` those that go the other way. They last as long as a run does, or are `cross_traffic_on_off`.

    With a `hop`, a network has two halves: all that is said here is of the near one, from the browser to the hop, but
    for `quiet_ms`; what lies beyond is the hop's (`tuning.hops`).

    A page behind it has finished when no response to it has ended for `quiet_ms`, over whatever protocol; what holds
    where nothing is given, is for browsers to say.
    """

    name: str
    min_rtt_ms: float
    up_mbps: float | None = None
    down_mbps: float | None = None
    loss: float = 0
    queue_ms: float | None = None
    jitter_ms: float = 0
    reorder: bool = False
    loss_on: str = BOTH
    retransmit_ms: float | None = None
    drop_up_packets: tuple[int, ...] | None = None
    drop_down_packets: tuple[int, ...] | None = None
    drop_up_at_ms: tuple[float, ...] | None = None
    drop_down_at_ms: tuple[float, ...] | None = None
    up_trace: str | None = None
    down_trace: str | None = None
    quiet_ms: int | None = None
    # What came later is None where it is not given: a campaign from before it is continued as if it said so.
    up_delay_ms: float | None = None
    up_loss: float | None = None
    down_loss: float | None = None
    burst_packets: float | None = None
    gilbert_elliott: GilbertElliott | None = None
    retransmit_tries: int | None = None
    retransmit_reorder: bool | None = None
    up_queue: Queue | None = None
    down_queue: Queue | None = None
    on_off: OnOff | None = None
    up_on_off: OnOff | None = None
    down_on_off: OnOff | None = None
    cross_traffic: tuple[str, ...] | None = None
    up_cross_traffic: tuple[str, ...] | None = None
    cross_traffic_on_off: OnOff | None = None
    up_conditions: str | None = None
    down_conditions: str | None = None
    hop: Hop | None = None
    up_trace_sha256: str | None = field(default=None, metadata=DERIVED)
    down_trace_sha256: str | None = field(default=None, metadata=DERIVED)
    up_conditions_sha256: str | None = field(default=None, metadata=DERIVED)
    down_conditions_sha256: str | None = field(default=None, metadata=DERIVED)

    @property
    def follows_clock(self) -> bool:
        """Whether what it does to a packet depends on when the emulator began, or on the packets before."""
        on_off = any((self.on_off, self.up_on_off, self.down_on_off))
        files = (self.up_trace, self.down_trace, self.up_conditions, self.down_conditions)
        return self.drops_chosen_packets or on_off or any(file is not None for file in files)

    @property
    def drops_chosen_packets(self) -> bool:
        """Whether it loses packets that are chosen by number or time."""
        return any((self.drop_up_packets, self.drop_down_packets, self.drop_up_at_ms, self.drop_down_at_ms))

    @property
    def delay_ms(self) -> float:
        """Propagation delay of each direction, where they do not differ."""
        return self.min_rtt_ms / 2

    def delay_of(self, direction: str) -> float:
        """Propagation delay of one direction, in ms."""
        up_ms = self.delay_ms if self.up_delay_ms is None else self.up_delay_ms
        return up_ms if direction == UP else self.min_rtt_ms - up_ms

    def rate_of(self, direction: str) -> float | None:
        """The rate of one direction in Mbit/s, by mean if it follows a trace; None where nothing limits it."""
        return self.up_mbps if direction == UP else self.down_mbps

    def constant_rate_of(self, direction: str) -> float | None:
        """The same, where it is one rate all the time; None where it is not."""
        varies = (f"{direction}_trace", "on_off", f"{direction}_on_off")
        return None if any(getattr(self, key) for key in varies) else self.rate_of(direction)

    def loss_of(self, direction: str) -> float:
        """Probability of loss in one direction; a packet and its answer both survive with 1 - loss.

        On a link that retransmits, it is that of a try. The shells reckon so too, for `mm-net --profile`
        (`one_way_loss` in Rust).
        """
        if self.up_loss is not None or self.down_loss is not None:
            return (self.up_loss if direction == UP else self.down_loss) or 0.0
        if self.loss_on == BOTH:
            return 1 - math.sqrt(1 - self.loss)
        return self.loss if self.loss_on == direction else 0.0

    def lasting_loss_of(self, direction: str) -> float:
        """Probability that a packet is lost in one direction whatever the link does about it."""
        loss = self.loss_of(direction)
        if self.retransmit_ms is None:
            return loss
        return 0.0 if self.retransmit_tries is None else loss**self.retransmit_tries

    def bursts_of(self, direction: str) -> GilbertElliott | None:
        """By which model one direction loses packets in bursts, if it does."""
        if not (loss := self.loss_of(direction)):
            return None
        return GilbertElliott.bursts(loss, self.burst_packets) if self.burst_packets else self.gilbert_elliott

    def on_off_of(self, direction: str) -> OnOff | None:
        """When one direction is on and off, if it is not always on."""
        return self.on_off or (self.up_on_off if direction == UP else self.down_on_off)

    def queue_of(self, direction: str) -> Queue | None:
        """What waits for one direction of the link, with its limit; None where nothing does."""
        queue = self.up_queue if direction == UP else self.down_queue
        if queue is None:
            return None if self.queue_ms is None else Queue(DROP_TAIL, limit_ms=self.queue_ms)
        is_limited_here = queue.has_limit or queue.kind in UNLIMITED
        return queue if is_limited_here else replace(queue, limit_ms=self.queue_ms)

    def conditions_of(self, direction: str) -> Conditions | None:
        """Delay and loss of one direction over time, where they change. Raises OSError, ValueError."""
        path = self.up_conditions if direction == UP else self.down_conditions
        return None if path is None else read_conditions(Path(path))

    @property
    def has_cross_traffic(self) -> bool:
        """Whether background flows share it with the page."""
        return bool(self.cross_traffic or self.up_cross_traffic)

    @property
    def alone(self) -> "Network":
        """The same without background flows."""
        return replace(self, cross_traffic=None, up_cross_traffic=None, cross_traffic_on_off=None)

    @property
    def halves(self) -> "tuple[Network, ...]":
        """The near and the far half as networks of their own; the network itself where there is no hop."""
        if not (hop := self.hop):
            return (self,)
        near = replace(self, name=f"{self.name}: near", hop=None)
        far = Network(
            name=f"{self.name}: far",
            min_rtt_ms=hop.min_rtt_ms,
            up_mbps=hop.up_mbps,
            down_mbps=hop.down_mbps,
            queue_ms=hop.queue_ms,
            loss=hop.loss,
            jitter_ms=hop.jitter_ms,
        )
        return near, far

    @property
    def path_rtt_ms(self) -> float:
        """The least round-trip time between the browser and the servers."""
        return sum(half.min_rtt_ms for half in self.halves)

    @property
    def up_queue_bytes(self) -> int | None:
        """The most that may wait in the uplink's queue, or None where no limit is in bytes or in time."""
        return self._queue_bytes(UP)

    @property
    def down_queue_bytes(self) -> int | None:
        return self._queue_bytes(DOWN)

    def _queue_bytes(self, direction: str) -> int | None:
        queue, rate_mbps = self.queue_of(direction), self.rate_of(direction)
        return None if queue is None or rate_mbps is None else queue.length_bytes(rate_mbps, self.min_rtt_ms)

    def queue_wait_ms(self, otherwise_ms: float) -> float:
        """The longest that a packet may wait in a queue of either direction; `otherwise_ms` where nothing limits it."""
        waits_ms = [0.0]
        for direction in (UP, DOWN):
            if (queue := self.queue_of(direction)) and (rate_mbps := self.rate_of(direction)):
                wait_ms = queue.longest_wait_ms(rate_mbps, self.min_rtt_ms)
                waits_ms.append(otherwise_ms if wait_ms is None else wait_ms)
        return max(waits_ms)

    def tcp_rate_bps(self, connections: int = 1) -> float:
        """What so many TCP connections reach downwards: the link's rate, or what losses leave of it.

        Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm" (CCR 1997):
        rate <= (MSS / RTT) * 1.22 / sqrt(p) for each connection.
        """
        halves = self.halves
        rate_bps = min(half.down_mbps or UNLIMITED_MBPS for half in halves) * 1e6
        loss = 1 - math.prod(1 - half.lasting_loss_of(DOWN) for half in halves)
        if loss and self.path_rtt_ms:
            mathis_bps = connections * SEGMENT_BYTES * 8 / (self.path_rtt_ms / 1e3) * 1.22 / loss**0.5
            rate_bps = min(rate_bps, mathis_bps)
        return rate_bps

    def __str__(self) -> str:
        up, down = ("no limit" if mbps is None else f"{mbps:.3g} Mbit/s" for mbps in (self.up_mbps, self.down_mbps))
        repaired = "" if self.retransmit_ms is None else f" repaired in {self.retransmit_ms:g} ms"
        changes = ", delay or loss over time" if self.up_conditions or self.down_conditions else ""
        drops = ", chosen packets dropped" if self.drops_chosen_packets else ""
        beside = "".join(
            f", beside {' and '.join(kinds)}{' upwards' if way == UP else ''}"
            for way, kinds in ((DOWN, self.cross_traffic), (UP, self.up_cross_traffic))
            if kinds
        )
        near = f"{up} up, {down} down, {self.min_rtt_ms:g} ms, loss {self.loss:g}{changes}{repaired}{drops}{beside}"
        return f"{near}; hop ({self.hop.kind}); {self.halves[1]}" if self.hop else near


def read_trace(path: Path) -> list[bytes]:
    """The lines of a trace in Mahimahi's format, which may be compressed by gzip, or such lines for the rates of a
    conditions file. Raises OSError, EOFError, ValueError."""
    if is_conditions(path):
        return [b"%d" % at_ms for at_ms in read_conditions(path).opportunities_ms()]
    return _trace_content(path).split()


def _trace_content(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content


def _extent(path: Path) -> tuple[int, int]:
    """How many lines a trace in Mahimahi's format has, and the last one's time in ms. It is not divided into lines:
    those of half a million take longer than all other settings. Raises OSError, EOFError, ValueError, IndexError."""
    content = _trace_content(path)
    is_plain = content.endswith(b"\n") and b"\n\n" not in content and not content.startswith(b"\n")
    return content.count(b"\n") if is_plain else len(content.split()), int(content.rsplit(maxsplit=1)[-1])


def _locate_files(table: Table, file: Path) -> Table:
    """`table` with the paths of its traces and conditions, which are relative to `file`, made absolute."""

    def located(path: Any) -> Any:
        return str((file.parent / path).resolve()) if isinstance(path, str) else path

    keys = (f"{direction}_{kind}" for direction in (UP, DOWN) for kind in ("trace", "conditions"))
    files = {key: table[key] for key in keys if key in table}
    return {
        **table,
        **{key: [*map(located, path)] if isinstance(path, list) else located(path) for key, path in files.items()},
    }


def _finished(network: Network) -> Network:
    """`network` with what follows from its traces and losses. Raises ValueError with what is wrong with it."""
    _check(network)
    _check_hop(network)
    network = _with_loss(_with_conditions(_with_traces(network)))
    # A queue that cannot hold one full packet would drop every one that does not meet an idle link.
    for direction, size in ((UP, network.up_queue_bytes), (DOWN, network.down_queue_bytes)):
        if size is not None and size < PACKET_BYTES:
            queue = getattr(network, f"{direction}_queue")
            key = f"{direction}_queue" if queue and queue.has_limit else "queue_ms"
            raise ValueError(f"{key} makes a queue of less than one packet of 1500 bytes")
    return network


def _with_loss(network: Network) -> Network:
    """`network` with the loss of a round trip, where that follows from what is said of its directions."""
    if network.gilbert_elliott:
        mean = network.gilbert_elliott.loss
        loss = 1 - (1 - mean) ** 2 if network.loss_on == BOTH else mean
    elif network.up_loss is not None or network.down_loss is not None:
        loss = 1 - (1 - network.loss_of(UP)) * (1 - network.loss_of(DOWN))
    else:
        return network
    return replace(network, loss=loss)


def _with_traces(network: Network) -> Network:
    for direction in ("up", "down"):
        if (path := getattr(network, f"{direction}_trace")) is None:
            continue
        try:
            has_columns = is_conditions(Path(path))
        except OSError as error:
            raise ValueError(f"{direction}_trace: {path}: {error}") from None
        if has_columns:
            conditions = _read_conditions(path, f"{direction}_trace")
            if not conditions.has(RATE):
                raise ValueError(f"{direction}_trace: {path} has no {RATE}; name it by {direction}_conditions alone")
            if (conditions.has(DELAY) or conditions.has(LOSS)) and getattr(network, f"{direction}_conditions") != path:
                raise ValueError(
                    f"{direction}_trace: {path} has delays or losses, too, which {direction}_conditions applies: name "
                    "it there, too, or take these columns out"
                )
            derived = {f"{direction}_trace_sha256": _digest(path), f"{direction}_mbps": conditions.mean(RATE)}
            network = replace(network, **derived)  # type: ignore[arg-type]
            continue
        try:
            lines, period_ms = _extent(Path(path))
            mbps = lines * TRACE_LINE_BYTES * 8 / period_ms / 1e3
        except (OSError, EOFError) as error:
            raise ValueError(f"{direction}_trace: {path}: {error}") from None
        except (ValueError, IndexError, ZeroDivisionError):
            raise ValueError(f"{direction}_trace: {path} is no Mahimahi trace") from None
        derived = {f"{direction}_trace_sha256": _digest(path), f"{direction}_mbps": mbps}
        network = replace(network, **derived)  # type: ignore[arg-type]
    return network


def _with_conditions(network: Network) -> Network:
    for direction in (UP, DOWN):
        key = f"{direction}_conditions"
        if (path := getattr(network, key)) is None:
            continue
        conditions = _read_conditions(path, key)
        if conditions.has(RATE) and getattr(network, f"{direction}_trace") != path:
            raise ValueError(
                f"{key}: {path} has {RATE}, too, which {direction}_trace applies: name it there, too, or take that "
                "column out"
            )
        if not (conditions.has(DELAY) or conditions.has(LOSS)):
            raise ValueError(f"{key}: {path} has neither {DELAY} nor {LOSS}; name it by {direction}_trace alone")
        if conditions.has(LOSS) and network.retransmit_ms is not None:
            raise ValueError(f"{key}: {path} has losses, which retransmit_ms does not repair; leave out either")
        network = replace(network, **{f"{key}_sha256": _digest(path)})  # type: ignore[arg-type]
    return network


def _read_conditions(path: str, key: str) -> Conditions:
    """The conditions that `key` names. Raises ValueError."""
    try:
        return read_conditions(Path(path))
    except (OSError, ValueError) as error:
        raise ValueError(f"{key}: {path}: {error}") from None


def _digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _check(network: Network) -> None:
    if IN_BROWSER in network.name:
        raise ValueError(f"a name must not have {IN_BROWSER!r}, which stands before a browser's")
    for direction in ("up", "down"):
        mbps, trace = (getattr(network, f"{direction}_{key}") for key in ("mbps", "trace"))
        if mbps is not None and trace is not None:
            raise ValueError(f"give {direction}_mbps or {direction}_trace, not both")
        if mbps is not None and mbps <= 0:
            raise ValueError(f"{direction}_mbps must be more than 0")
        if (mbps is None and trace is None) != (network.queue_of(direction) is None):
            raise ValueError(
                f"queue_ms and a rate belong together: give both {direction}_mbps (or _trace) and queue_ms (or "
                f"{direction}_queue), or none"
            )
    if network.min_rtt_ms < 0:
        raise ValueError("min_rtt_ms must not be negative")
    if not 0 <= network.jitter_ms <= network.min_rtt_ms / 2:
        raise ValueError("jitter_ms must be at least 0 and at most half of min_rtt_ms")
    if not 0 <= network.loss < 1:
        raise ValueError("loss must be at least 0 and less than 1")
    if network.loss_on not in (BOTH, UP, DOWN):
        raise ValueError(f"loss_on must be {BOTH}, {UP} or {DOWN}")
    if network.quiet_ms is not None and network.quiet_ms < LEAST_QUIET_MS:
        raise ValueError(f"quiet_ms must be at least {LEAST_QUIET_MS}")
    if network.up_delay_ms is not None and not 0 <= network.up_delay_ms <= network.min_rtt_ms:
        raise ValueError("up_delay_ms must be at least 0 and at most min_rtt_ms, of which it is the uplink's share")
    if network.up_delay_ms is not None and network.jitter_ms > min(map(network.delay_of, (UP, DOWN))):
        raise ValueError("jitter_ms must be at most the delay of each direction")
    _check_queues(network)
    _check_losses(network)
    _check_on_off(network)
    _check_drops(network)
    _check_cross_traffic(network)


def _check_queues(network: Network) -> None:
    if (network.rate_of(UP) is None and network.up_trace is None) != (
        network.rate_of(DOWN) is None and network.down_trace is None
    ):
        raise ValueError("a link needs the rates of both directions: give both, or none")
    limits = []
    for direction in (UP, DOWN):
        given: Queue | None = getattr(network, f"{direction}_queue")
        if given is None:
            limits.append(network.queue_ms)
            continue
        given.check(f"{direction}_queue")
        if given.kind in LIMITED and not given.has_limit and network.queue_ms is None:
            raise ValueError(f"{direction}_queue: the kind {given.kind} needs a limit, such as limit_ms, or queue_ms")
        limits.append(None if given.has_limit or given.kind in UNLIMITED else network.queue_ms)
    if network.queue_ms is not None and limits == [None, None]:
        raise ValueError("queue_ms limits no queue: up_queue and down_queue have limits of their own, or none")


def _check_losses(network: Network) -> None:
    one_way = {"up_loss": network.up_loss, "down_loss": network.down_loss}
    given = {name: value for name, value in one_way.items() if value is not None}
    for name, value in given.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and less than 1")
    ways = [*(["loss"] if network.loss else []), *(["up_loss or down_loss"] if given else [])]
    ways += ["gilbert_elliott"] if network.gilbert_elliott else []
    if len(ways) > 1:
        raise ValueError(f"give {' or '.join(ways[:2])}, not both")
    if given and network.loss_on != BOTH:
        raise ValueError("loss_on is of loss; up_loss and down_loss say themselves which direction loses packets")
    if model := network.gilbert_elliott:
        for name, value in vars(model).items():
            if not 0 <= value <= 1:
                raise ValueError(f"gilbert_elliott.{name} must be from 0 to 1")
        if not model.good_to_bad or not model.bad_to_good or not 0 < model.loss < 1:
            raise ValueError("gilbert_elliott must become bad and good again, and lose some packets, not all")
    bursts, retransmits = network.burst_packets, network.retransmit_ms is not None
    losses = [loss for direction in (UP, DOWN) if (loss := network.loss_of(direction))]
    if bursts is not None:
        if network.gilbert_elliott:
            raise ValueError("give burst_packets or gilbert_elliott, not both")
        if not losses or bursts < 1 or any(GilbertElliott.bursts(loss, bursts).good_to_bad > 1 for loss in losses):
            raise ValueError("burst_packets must be at least 1, and long enough to make up a loss of more than 0")
    if retransmits and (bursts is not None or network.gilbert_elliott):
        raise ValueError("retransmit_ms is for losses that do not come in bursts")
    if retransmits and not (network.retransmit_ms and network.retransmit_ms > 0 and losses):
        raise ValueError("retransmit_ms must be more than 0, and needs a loss of more than 0, which it repairs")
    if not retransmits and (network.retransmit_tries is not None or network.retransmit_reorder is not None):
        raise ValueError("retransmit_tries and retransmit_reorder need retransmit_ms")
    if network.retransmit_tries is not None and network.retransmit_tries < 2:
        raise ValueError("retransmit_tries must be at least 2: the first try and a repeat")


def _check_on_off(network: Network) -> None:
    if network.on_off and (network.up_on_off or network.down_on_off):
        raise ValueError("give on_off, which is of both directions, or up_on_off and down_on_off")
    for name in ("on_off", "up_on_off", "down_on_off", "cross_traffic_on_off"):
        times: OnOff | None = getattr(network, name)
        if times and min(times.on_s, times.off_s) < LEAST_ON_OFF_S:
            raise ValueError(f"{name}: on_s and off_s must be at least {LEAST_ON_OFF_S:g}")


def _check_drops(network: Network) -> None:
    for direction in (UP, DOWN):
        packets, at_ms = (getattr(network, f"drop_{direction}_{key}") or () for key in ("packets", "at_ms"))
        if min(packets, default=1) < 1 or len(set(packets)) < len(packets):
            raise ValueError(f"drop_{direction}_packets must be whole numbers of at least 1, each once")
        if min(at_ms, default=0) < 0 or len(set(at_ms)) < len(at_ms):
            raise ValueError(f"drop_{direction}_at_ms must be times of at least 0, each once")


def _check_cross_traffic(network: Network) -> None:
    for name in ("cross_traffic", "up_cross_traffic"):
        for kind in getattr(network, name) or ():
            if kind not in CROSS_TRAFFIC:
                raise ValueError(f"{name} has {kind!r}; background flows are {', '.join(CROSS_TRAFFIC)}")
            if name == "up_cross_traffic" and kind.startswith(QUIC_FLOW):
                raise ValueError(
                    f"up_cross_traffic has {kind!r}; background flows over QUIC are sent to the client only"
                )
    if len(network.cross_traffic or ()) + len(network.up_cross_traffic or ()) > MOST_FLOWS:
        raise ValueError(f"cross_traffic and up_cross_traffic must be at most {MOST_FLOWS} flows together")
    if network.cross_traffic_on_off and not network.has_cross_traffic:
        raise ValueError("cross_traffic_on_off needs cross_traffic or up_cross_traffic, whose flows are on and off")
    if network.has_cross_traffic and network.drops_chosen_packets:
        raise ValueError("cross_traffic and drop_* exclude each other: which packet is a page's would be chance")


def _check_hop(network: Network) -> None:
    if not network.hop:
        return
    try:
        _finished(network.halves[1])
    except ValueError as error:
        raise ValueError(f"hop: {error}") from None
    if network.has_cross_traffic:
        raise ValueError("hop and cross_traffic exclude each other: background flows have no way through a hop")


# Every network by name: those of a file, or all that there are.
load = Reader(FILENAME, Network, _finished, GRID_UNITS, _locate_files).load
