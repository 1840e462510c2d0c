"""The differences between the requests of two loads: which are the same, and how they differ."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.report.waterfalls.loads import Load, LoadedRequest
from analysis.text import ms, plural
from dataset.har import comparable_url

# A difference of starts or durations is marked if it exceeds the larger of two thresholds: a thirtieth of a second,
# since nobody sees smaller differences in a film, and a share of the time until the earlier load event, which is
# visible on the axis.
FRAME_MS = 1000 / 30
THRESHOLD_SHARE = 0.05
# A difference in the size of two responses is marked if it exceeds both thresholds: the possible difference between
# their headers, which HPACK and QPACK code differently, and a share of the smaller response.
SIZE_BYTES = 1000
SIZE_SHARE = 0.05
# Requests that are wanted within this time of each other form a burst: their order means nothing.
BURST_MS = 10


@dataclass(frozen=True)
class Row:
    """One request in each load (None if a load does not have it), and the differences of the second load in words."""

    requests: tuple[LoadedRequest | None, ...]
    differences: tuple[str, ...] = ()

    @property
    def some(self) -> LoadedRequest:
        """The request in the first of the loads that made it."""
        return next(request for request in self.requests if request)


def default_threshold_ms(loads: Sequence[Load]) -> float:
    """The threshold above which a difference of requests' starts or durations is marked."""
    ends = [load.metrics.get("plt") or load.end_ms for load in loads]
    return max(FRAME_MS, THRESHOLD_SHARE * min(ends))


def rows_of_loads(loads: Sequence[Load], threshold_ms: float) -> list[Row]:
    """The rows of a waterfall of one or two `loads`, in the order of the first load. A request that only the second
    load has stands at the time at which it began."""
    if len(loads) == 1:
        return [Row((request,)) for request in loads[0].requests]
    pairs = match(loads[0].requests, loads[1].requests)
    moved = moved_requests([(first, second) for first, second in pairs if first and second])
    rows = [
        Row((first, second), tuple(differences(first, second, threshold_ms, moved=(first, second) in moved)))
        for first, second in pairs
    ]
    return sorted(rows, key=lambda row: row.some.start_ms)


Pair = tuple[LoadedRequest | None, LoadedRequest | None]


def match(first: Sequence[LoadedRequest], second: Sequence[LoadedRequest]) -> list[Pair]:
    """Pairs of the same request in both loads: first by method and URL, then, for the rest, by method and URL without
    its query, whose numbers may be random. The nth of several equal requests pairs with the nth of the other load."""
    pairs: list[Pair] = []
    for has_query in (True, False):
        waiting: dict[tuple[str, str], list[LoadedRequest]] = defaultdict(list)
        for request in second:
            waiting[_name(request, has_query=has_query)].append(request)
        rest = []
        for request in first:
            if others := waiting[_name(request, has_query=has_query)]:
                pairs.append((request, others.pop(0)))
            else:
                rest.append(request)
        first, second = rest, [request for others in waiting.values() for request in others]
    return [*pairs, *((request, None) for request in first), *((None, request) for request in second)]


def _name(request: LoadedRequest, *, has_query: bool) -> tuple[str, str]:
    url = comparable_url(request.url)
    return request.method, url if has_query else url.partition("?")[0]


def moved_requests(pairs: Sequence[tuple[LoadedRequest, LoadedRequest]]) -> set[Pair]:
    """The smallest set of `pairs` without which both loads have the same order (the rest is a longest increasing
    subsequence).

    Requests of one burst have no order; each is wanted within `BURST_MS` of the one before.
    """
    first, second = (bursts([pair[side] for pair in pairs]) for side in (0, 1))
    pairs = sorted(pairs, key=lambda pair: (first[pair[0]], second[pair[1]]))
    ends: list[int] = []
    at: list[int] = []
    before: list[int | None] = []
    for place, pair in enumerate(pairs):
        burst = second[pair[1]]
        length = bisect_right(ends, burst)
        before.append(at[length - 1] if length else None)
        ends[length : length + 1], at[length : length + 1] = [burst], [place]
    in_order, last = set(), at[-1] if at else None
    while last is not None:
        in_order.add(last)
        last = before[last]
    return {pair for place, pair in enumerate(pairs) if place not in in_order}


def bursts(requests: Sequence[LoadedRequest]) -> dict[LoadedRequest, int]:
    """The number of the burst of each request."""
    numbers, number, last_ms = {}, 0, 0.0
    for request in sorted(requests, key=lambda request: request.start_ms):
        number += request.start_ms - last_ms > BURST_MS
        numbers[request], last_ms = number, request.start_ms
    return numbers


def differences(
    first: LoadedRequest | None, second: LoadedRequest | None, threshold_ms: float, *, moved: bool
) -> list[str]:
    """The differences of load B's request from load A's, in a few words each."""
    if not first or not second:
        return ["only in B" if second else "only in A"]
    texts = []
    if abs(later := second.start_ms - first.start_ms) > threshold_ms:
        texts.append(f"B starts {ms(abs(later))} ms {'later' if later > 0 else 'sooner'}")
    if abs(longer := second.duration_ms - first.duration_ms) > threshold_ms:
        texts.append(f"B takes {ms(abs(longer))} ms {'more' if longer > 0 else 'less'}")
    if moved:
        texts.append("other order")
    # Firefox does not report the priority.
    if first.priority and second.priority and first.priority != second.priority:
        texts.append(f"priority {first.priority}, {second.priority}")
    if first.status != second.status:
        texts.append(f"status {first.status}, {second.status}")
    if first.bytes is not None and second.bytes is not None:
        more = second.bytes - first.bytes
        if abs(more) > max(SIZE_BYTES, SIZE_SHARE * min(first.bytes, second.bytes)):
            texts.append(f"{more:+,} bytes")
    return texts


def summary(loads: Sequence[Load], rows: Sequence[Row], threshold_ms: float) -> str:
    """The differences between two loads, in words."""
    both = [row for row in rows if all(row.requests)]
    words = Counter(word for row in both for text in row.differences for word in text.split()[:2])
    alone = [sum(row.requests[1 - side] is None for row in rows) for side in (0, 1)]
    return (
        f"Both loads have {plural('request', len(both))} in common: {words['starts']} differ in start and "
        f"{words['takes']} in duration by more than {ms(threshold_ms)} ms, {words['other']} in order, "
        f"{words['priority']} in priority. {plural('request', alone[0])} of A and {alone[1]} of B have no counterpart."
    )
