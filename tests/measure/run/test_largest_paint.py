"""The largest contentful paint: the request that it needed, and why data of other responses arrived before."""

from typing import Any

import pytest

from browsers.contract import StreamRequest
from measure.run.largest_paint import BEFORE, LATER, LESS_URGENT, MORE_URGENT, LargestPaint, largest_paint

PICTURE = "https://a.example/picture.jpg"
BEGAN_S = 100.0


def page(url: str = PICTURE, **more: Any) -> dict[str, Any]:
    entry = {"startTime": 900, "domPath": "body > img", "url": url, **more}
    return {"browserScripts": [{"timings": {"largestContentfulPaint": entry}}]}


def request(
    url: str, sent_ms: float, *arrivals: tuple[float, int], urgency: int = 3, connection: int = 1
) -> StreamRequest:
    times = tuple((BEGAN_S + ms / 1000, size) for ms, size in arrivals)
    return StreamRequest(0, url, urgency, False, connection, BEGAN_S + sent_ms / 1000, times)


def test_data_between_a_request_and_its_last_byte_are_ahead_by_their_urgency() -> None:
    streams = [
        request("https://a.example/", 0, (100, 7), urgency=0),
        request("https://a.example/style.css", 110, (200, 1), (301, 2), urgency=0),
        request("https://a.example/before.jpg", 290, (400, 10), (500, 20), (701, 40)),
        request(PICTURE, 300, (450, 1000), (700, 500)),
        request("https://a.example/later.jpg", 310, (480, 100)),
        request("https://a.example/late.js", 320, (490, 1000), urgency=5),
        request("https://b.example/other.jpg", 320, (490, 5000), connection=2),
    ]
    paint = largest_paint(page(), streams, BEGAN_S, followed_ms=50)
    assert paint == LargestPaint(
        painted_ms=950,
        element="body > img",
        url=PICTURE,
        requested_ms=300,
        arrived_ms=700,
        urgency=3,
        incremental=False,
        bytes=1500,
        ahead_bytes={MORE_URGENT: 2, BEFORE: 30, LATER: 100, LESS_URGENT: 1000},
    )


def test_a_picture_is_painted_from_the_first_of_its_responses() -> None:
    streams = [request(PICTURE, 300, (450, 10)), request(PICTURE, 500, (600, 10)), request(PICTURE, 980, (990, 10))]
    paint = largest_paint(page(), streams, BEGAN_S)
    assert paint and (paint.requested_ms, paint.arrived_ms) == (300, 450)


def test_a_picture_whose_url_has_a_fragment_was_requested_without_it() -> None:
    paint = largest_paint(page(f"{PICTURE}#part"), [request(PICTURE, 300, (450, 10))], BEGAN_S)
    assert paint and (paint.url, paint.requested_ms) == (f"{PICTURE}#part", 300)


@pytest.mark.parametrize(
    ("document", "streams"),
    [
        (page(url=""), [request(PICTURE, 300, (450, 10))]),  # text
        (page(), []),  # over HTTP/1.1, or without a log
        (page(), [request(PICTURE, 300)]),  # cut off
        (page(), [request(PICTURE, 1000, (1100, 10))]),  # requested for another purpose, later
    ],
)
def test_without_its_request_a_paint_still_has_its_time(document: dict[str, Any], streams: list[StreamRequest]) -> None:
    paint = largest_paint(document, streams, BEGAN_S)
    assert paint and paint.painted_ms == 900 and paint.requested_ms is None and not paint.ahead_bytes


def test_a_load_without_a_paint_has_none() -> None:
    assert largest_paint({}, [], BEGAN_S) is None
    assert largest_paint({"browserScripts": [{"timings": {}}]}, [], BEGAN_S) is None
    assert largest_paint(page(startTime=0), [], BEGAN_S) is None
