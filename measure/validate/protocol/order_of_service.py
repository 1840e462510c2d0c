"""The order in which a server sends the responses of one connection, and the bytes that it sends before a late, urgent
response.

The browser requests resources of known priorities (`measure.validate.site`) in such quick succession that the server
has nearly all of them to send at once, over a link that takes a second for them. Later, while a long response is being
sent, the browser requests an urgent one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from base.errors import EyelevelError
from browsers.contract import StreamRequest
from browsers.registry import browser_named
from dataset.checks import Check, between, unchecked
from dataset.observations import (
    ANSWER_BYTES,
    ANSWER_S,
    BACKGROUND,
    MOST_AGAINST_PRIORITY,
    NARROW_MBPS,
    ONE_AFTER_ANOTHER,
    ORDER_OF_SERVICE,
    TURNS,
    URGENT,
)
from measure.campaign.single_load import single_load
from measure.captures.reading import CapturedConnection, largest, read_connections
from measure.captures.streams import STREAM_FIELDS, carried, requests
from measure.run.monitor import CAPTURE
from measure.run.setting import Setting
from measure.validate.contract import Bench, Validation
from measure.validate.protocol.settings import BULK_LOADING, KEYS, SEED, ObservationMethod
from measure.validate.site import BULK_BYTES, ORDER_PAGE, ORDERED
from record.site import Site
from servers.registry import server_of
from tuning.networks import Network
from tuning.protocols import Protocol

# The link is so slow that sending a response takes far longer than a server needs to begin it. The queue is so long
# that the page's bytes do not fill it.
NARROW = Network("narrow", min_rtt_ms=50, up_mbps=8, down_mbps=NARROW_MBPS, queue_ms=400)

# Two responses are compared if at least this share of each was still unsent when the server had all requests.
LEAST_SHARE = 0.5

# A scheduler that ignores priorities (first come, first served, or fair) sends at least this share of the bytes while
# something more urgent waits.
LEAST_AGAINST_PRIORITY = 0.15

# NGINX fills a TLS record before it writes it (`ssl_buffer_size`); quic_server's turns have the same length.
TURN_BYTES = 16_384


@dataclass(frozen=True)
class Order:
    """A scheduler's order: `strictly`, whether more urgent responses always go first; and whether responses of the same
    urgency take turns, for incremental ones and for others."""

    strictly: bool
    incremental_take_turns: bool
    others_take_turns: bool


# The schedulers by their names in protocols.toml.
ORDERS = {
    "urgency": Order(strictly=True, incremental_take_turns=True, others_take_turns=True),
    "urgency-incremental": Order(strictly=True, incremental_take_turns=True, others_take_turns=False),
    "urgency-first-come": Order(strictly=True, incremental_take_turns=False, others_take_turns=False),
    "fair": Order(strictly=False, incremental_take_turns=True, others_take_turns=True),
    "first-come": Order(strictly=False, incremental_take_turns=False, others_take_turns=False),
}


@dataclass(frozen=True)
class Response:
    """A response of the page: its path, the priority that the browser requested (RFC 9218), when its request came in at
    the server (s since the first request), and its bytes including frame headers."""

    path: str
    urgency: int
    incremental: bool
    asked_s: float
    bytes: int


@dataclass(frozen=True)
class Served:
    """Bytes of the response with this path that left the server together, and when (`at_s`)."""

    at_s: float
    path: str
    bytes: int


@dataclass(frozen=True)
class OrderOfService:
    """The responses of a server, and the order in which their parts left it."""

    responses: tuple[Response, ...]
    served: tuple[Served, ...]

    def document(self) -> dict[str, Any]:
        """The data for `analysis.figures.order_of_service`, as JSON."""
        return {
            "responses": [asdict(response) for response in self.responses],
            "served": [[round(part.at_s, 4), part.path, part.bytes] for part in _joined(self.served)],
            "numbers": asdict(self.numbers),
        }

    @property
    def numbers(self) -> "OrderNumbers":
        """The numbers that are judged."""
        return OrderNumbers(
            against_priority(self),
            _mean(turns(self, incremental=True)),
            _mean(turns(self, incremental=False)),
            *in_front(self),
        )


@dataclass(frozen=True)
class OrderNumbers:
    """An order of service in numbers: the share of bytes sent against priority; how far responses of the same urgency
    took turns (None if nothing could be compared); and how many bytes of other responses, and how much time (s), came
    before an urgent response."""

    against_priority: float
    turns_incremental: float | None
    turns_others: float | None
    in_front_bytes: int
    waited_s: float


def observe_order(protocol: Protocol, sites: Mapping[str, Site]) -> OrderOfService:
    """Load the page `ORDER_PAGE` over `protocol`; returns the order in which its responses were sent. Raises
    EyelevelError."""
    setting = Setting(sites[ORDER_PAGE], NARROW, protocol, BULK_LOADING, SEED)
    with single_load(setting, ObservationMethod()) as folder:
        return read_order(folder, protocol.http_version)


def read_order(folder: Path, http_version: str) -> OrderOfService:
    """The order in which the server sent the page's responses, by the load in `folder`. Raises EyelevelError."""
    connection = largest(read_connections(folder / CAPTURE, folder / KEYS, http_version, STREAM_FIELDS))
    return order_in(connection, browser_named(BULK_LOADING.browser).read_streams(folder))


def order_in(connection: CapturedConnection, streams: Iterable[StreamRequest]) -> OrderOfService:
    """The order of service of a connection; `streams` are its requests. Raises EyelevelError."""
    # A returning browser requests everything again; the last visit is the one in the capture.
    asked_for = {stream.stream: stream for stream in streams}
    paths = {number: urlsplit(stream.url).path for number, stream in asked_for.items()}
    wanted = {number: path for number, path in paths.items() if path in (*ORDERED, BACKGROUND, URGENT)}
    arrivals = requests(connection)
    sent = [part for part in carried(connection) if part.stream in wanted]
    sizes = {path: sum(part.bytes for part in sent if part.stream == number) for number, path in wanted.items()}
    missing = [path for path in (*ORDERED, BACKGROUND, URGENT) if not sizes.get(path)]
    if missing or any(number not in arrivals for number in wanted):
        raise EyelevelError(f"the capture of the order of service lacks {', '.join(missing) or 'requests'}")
    start_s = min(arrivals[number] for number in wanted)
    return OrderOfService(
        tuple(
            Response(
                path,
                asked_for[number].urgency,
                asked_for[number].incremental,
                round(arrivals[number] - start_s, 6),
                sizes[path],
            )
            for number, path in wanted.items()
        ),
        tuple(Served(part.at_s - start_s, wanted[part.stream], part.bytes) for part in sent),
    )


def judge_order(protocol: Protocol, numbers: OrderNumbers) -> list[Check]:
    """Compare the measured order with that of the protocol's server."""
    name = protocol.name
    against, turning = "bytes sent against priority", "turns among {} responses"
    in_front = "bytes in front of an urgent response"
    kinds = (("incremental", numbers.turns_incremental), ("other", numbers.turns_others))
    server = server_of(protocol)
    scheduler = server.order_of_service(protocol)
    if scheduler is None:
        why = f"what {protocol.server} sends waits in the kernel, whose order is settled"
        if not protocol.in_kernel:
            why = f"nothing is known of the order of {protocol.server}"
        texts = {against: _percent(numbers.against_priority)}
        texts |= {turning.format(kind): _percent(share) for kind, share in kinds}
        texts[in_front] = f"{numbers.in_front_bytes / 1e3:,.0f} kB, {numbers.waited_s:.2f} s"
        return [unchecked(name, what, f"{text} ({why})") for what, text in texts.items()]
    order = ORDERS[scheduler]
    least, most = (0.0, MOST_AGAINST_PRIORITY) if order.strictly else (LEAST_AGAINST_PRIORITY, 1.0)
    checks = [between(name, against, 100 * least, 100 * numbers.against_priority, 100 * most, "%")]
    for (kind, share), take_turns in zip(kinds, (order.incremental_take_turns, order.others_take_turns), strict=True):
        least, most = TURNS if take_turns else ONE_AFTER_ANOTHER
        what = turning.format(kind)
        if share is None:
            checks.append(unchecked(name, what, "none were to be sent at once"))
        else:
            checks.append(between(name, what, 100 * least, 100 * share, 100 * most, "%"))
    # The kernel checks its bound (`notsent_lowat_bytes`) only before it fills another buffer, which is as large as the
    # bound (`tuning.kernel.limit_buffers`). So up to twice the bound waits in the kernel.
    held_bytes = 2 * (protocol.notsent_lowat_bytes or 0)
    bound = float(held_bytes + TURN_BYTES + ANSWER_BYTES)
    if order.strictly or order.others_take_turns:
        checks.append(between(name, in_front, 0, numbers.in_front_bytes, bound, "bytes"))
    else:
        checks.append(between(name, in_front, bound, numbers.in_front_bytes, BULK_BYTES, "bytes"))
    return checks


def against_priority(order: OrderOfService) -> float:
    """The share of bytes that were sent while a more urgent response waited. Bytes are counted from when the server had
    all requests for `ORDERED` until the last of these responses was sent."""
    served = _once_all_are_there(order)
    last = max((n for n, part in enumerate(served) if part.path in ORDERED), default=-1)
    served = served[: last + 1]
    urgencies = {response.path: response.urgency for response in order.responses}
    waiting = {path: sum(part.bytes for part in served if part.path == path) for path in ORDERED}
    total = wrong = 0
    for part in served:
        if part.path in waiting:
            waiting[part.path] -= part.bytes
        more_urgent = (path for path, rest in waiting.items() if rest and urgencies[path] < urgencies[part.path])
        total += part.bytes
        wrong += part.bytes * any(True for _ in more_urgent)
    return wrong / total if total else 0.0


def turns(order: OrderOfService, *, incremental: bool) -> Iterator[float]:
    """For each pair of responses of the same urgency whose incremental flag is `incremental`: the share of their bytes
    that were sent while both were under way. Bytes are counted from when the server had all requests."""
    served = _once_all_are_there(order)
    candidates = [r for r in order.responses if r.path in ORDERED and r.incremental == incremental]
    for one, other in combinations(candidates, 2):
        if one.urgency == other.urgency:
            parts = [part for part in served if part.path in (one.path, other.path)]
            shares = {r.path: sum(part.bytes for part in parts if part.path == r.path) / r.bytes for r in (one, other)}
            if min(shares.values()) >= LEAST_SHARE:
                yield _under_way_at_once(parts)


def in_front(order: OrderOfService) -> tuple[int, float]:
    """The bytes of other responses that left between the arrival of the urgent request and the first byte of its
    response, and the time between the two, in s."""
    asked_s = next(response.asked_s for response in order.responses if response.path == URGENT)
    first_s = next(part.at_s for part in order.served if part.path == URGENT)
    others = (part.bytes for part in order.served if asked_s <= part.at_s < first_s and part.path != URGENT)
    return sum(others), round(first_s - asked_s, 6)


def _once_all_are_there(order: OrderOfService) -> list[Served]:
    """The parts that left after the server had all requests for `ORDERED`, without those of the urgent response."""
    asked_s = max(response.asked_s for response in order.responses if response.path in ORDERED)
    return [part for part in order.served if part.at_s > asked_s + ANSWER_S and part.path != URGENT]


def _under_way_at_once(parts: Sequence[Served]) -> float:
    """The share of the bytes of two responses that left when both had begun and none had ended."""
    places = {path: [n for n, part in enumerate(parts) if part.path == path] for path in {p.path for p in parts}}
    begin = max(numbers[0] for numbers in places.values())
    end = min(numbers[-1] for numbers in places.values())
    return sum(part.bytes for part in parts[begin : end + 1]) / sum(part.bytes for part in parts)


def _joined(served: Iterable[Served]) -> Iterator[Served]:
    """`served`, with consecutive parts of a response joined if they left within 10 ms of each other."""
    last: Served | None = None
    for part in served:
        if last and last.path == part.path and part.at_s - last.at_s < 0.01:
            last = Served(last.at_s, last.path, last.bytes + part.bytes)
            continue
        if last:
            yield last
        last = part
    if last:
        yield last


def _mean(shares: Iterable[float]) -> float | None:
    values = list(shares)
    return sum(values) / len(values) if values else None


def _percent(share: float | None) -> str:
    return "none compared" if share is None else f"{share:.0%}"


def _applies(protocol: Protocol, bench: Bench) -> bool:
    return not bench.is_brief or protocol.scheduler is not None or protocol.notsent_lowat_bytes is not None


VALIDATION = Validation(
    "order of service",
    "the order of service of ",
    8,
    measure=lambda protocol, bench: observe_order(protocol, bench.sites),
    judge=lambda protocol, seen: judge_order(protocol, seen.numbers),
    document=lambda protocol, seen: {ORDER_OF_SERVICE: seen.document()},
    applies=_applies,
)
