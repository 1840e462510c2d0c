"""The largest contentful paint of a load: its element, the request that it needed, and the data that arrived before.

Browsertime reports the element; the browser's network log has the request, its priority, and the arrival of all data.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from browsers.contract import StreamRequest

# Why data of another response arrived between a request and the end of its response, on the same connection: by the
# urgency of the other request (RFC 9218), and whether it was sent before or later.
MORE_URGENT, LESS_URGENT = "more urgent", "less urgent"
BEFORE, LATER = "as urgent, requested before", "as urgent, requested later"
REASONS = (MORE_URGENT, BEFORE, LATER, LESS_URGENT)


@dataclass(frozen=True)
class LargestPaint:
    """The largest contentful paint (LCP) of a load. Times are in ms from the navigation.

    `element`: its place in the page, such as `body > div > img`; `url`: of its picture, empty for text. The other
    values are those of the picture's request; None or empty for text, and if the network log does not have the request.
    `requested_ms`: when the request was sent; `arrived_ms`: when the last new byte of its response arrived; `bytes`:
    how many arrived. `urgency` and `incremental` are those that the request was sent with. `ahead_bytes`: one of
    `REASONS` → how many bytes of other responses arrived in between, on the same connection.
    """

    painted_ms: float
    element: str
    url: str
    requested_ms: float | None = None
    arrived_ms: float | None = None
    urgency: int | None = None
    incremental: bool | None = None
    bytes: int = 0
    ahead_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def all_ahead_bytes(self) -> int | None:
        """The sum of `ahead_bytes`; None if they are unknown."""
        return None if self.requested_ms is None else sum(self.ahead_bytes.values())


def largest_paint(
    page: Mapping[str, Any], streams: Iterable[StreamRequest], began_s: float | None, followed_ms: float = 0.0
) -> LargestPaint | None:
    """The largest contentful paint of a load, from Browsertime's document on the `page`; None if there was none.

    It is the last entry until the load was over (W3C Largest Contentful Paint); no load has input, which would end the
    entries. (Browsertime's own number is the latest of the entry's times; for a picture that may be the time of its
    loading.) `streams`: the load's requests (`Browser.read_streams`). `began_s`: when the page was navigated to (s
    since 1970). `followed_ms`: how long after that the document's times begin. Raises LookupError, TypeError or
    AttributeError if the document is broken.
    """
    entries = [one.get("timings", {}).get("largestContentfulPaint") for one in page.get("browserScripts", ())]
    entry = next((one for one in entries if one and one["startTime"]), None)
    if not entry:
        return None
    paint = LargestPaint(entry["startTime"] + followed_ms, entry.get("domPath") or "", entry.get("url") or "")
    if not paint.url or began_s is None:
        return paint
    sent = [(one, 1000 * (one.sent_s - began_s)) for one in streams if one.sent_s is not None and one.arrivals]
    # A picture that is requested again, without need, is painted from its first response.
    sent_url = paint.url.partition("#")[0]
    needed = next((pair for pair in sent if pair[0].url == sent_url and pair[1] < paint.painted_ms), None)
    if needed is None:
        return paint
    request, requested_ms = needed
    arrived_ms = 1000 * (request.arrivals[-1][0] - began_s)
    ahead = Counter[str]()
    for other, other_ms in sent:
        if other is not request and other.connection == request.connection:
            ahead[_reason(request, other, is_before=other_ms <= requested_ms)] += sum(
                size for at_s, size in other.arrivals if requested_ms <= 1000 * (at_s - began_s) <= arrived_ms
            )
    return replace(
        paint,
        requested_ms=round(requested_ms, 1),
        arrived_ms=round(arrived_ms, 1),
        urgency=request.urgency,
        incremental=request.incremental,
        bytes=sum(size for _, size in request.arrivals),
        ahead_bytes={name: ahead[name] for name in REASONS},
    )


def _reason(request: StreamRequest, other: StreamRequest, *, is_before: bool) -> str:
    if other.urgency != request.urgency:
        return MORE_URGENT if other.urgency < request.urgency else LESS_URGENT
    return BEFORE if is_before else LATER
