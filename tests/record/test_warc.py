"""Web archives (WARC): each record is read by itself, so a broken one costs only itself and a line with its name.

The archives are small, written by the tests byte by byte.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.recordings import save_file

from base.errors import EyelevelError
from record.formats import read_recording
from record.formats.warc import moment_ms
from record.site import Recording

HOME, STYLE, BASKET = "https://shop.example/", "https://shop.example/a.css", "https://shop.example/basket"
DATE = "2026-03-01T10:00:00Z"
DOCUMENT, RULE = b"<!doctype html><p>Hello</p>", b"p { color: navy }"


def record(kind: str, url: str, block: bytes, length: int | None = None, **fields: str) -> bytes:
    """A record that claims this `length`; `fields`, with `_` for `-`, are added to the usual ones, or replace them."""
    usual = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:{kind}:{url}>", "WARC-Date": DATE, "WARC-Target-URI": url}
    usual |= {name.replace("_", "-"): value for name, value in fields.items()}
    lines = [f"{name}: {value}" for name, value in usual.items() if value]
    size = len(block) if length is None else length
    return "\r\n".join(["WARC/1.1", *lines, f"Content-Length: {size}", "", ""]).encode() + block + b"\r\n\r\n"


def message(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""])
    return head.encode("latin-1") + body


def response(url: str, body: bytes, *fields: str, status: str = "200 OK", **fields_of_record: str) -> bytes:
    return record("response", url, message(body, *fields, status=status), None, **fields_of_record)


def page(url: str = HOME, body: bytes = DOCUMENT, **fields_of_record: str) -> bytes:
    return response(url, body, "Content-Type: text/html", **fields_of_record)


def style(body: bytes = RULE, *fields: str, **fields_of_record: str) -> bytes:
    return response(STYLE, body, "Content-Type: text/css", *fields, **fields_of_record)


def imported(folder: Path, *parts: bytes, name: str = "x.warc") -> Recording:
    (folder / name).write_bytes(b"".join(parts))
    return read_recording(folder / name)


def bodies(recording: Recording) -> dict[str, bytes]:
    return {exchange.url: exchange.response.body for exchange in recording.exchanges}


# Incomplete bodies.

TRUNCATED = {
    "within a chunk": b"a\r\np { color:\r\n20\r\n navy }",
    "behind a chunk": b"a\r\np { color:\r\n",
    "within a length": b"a\r\np { color:\r\n7",
    "at once": b"11\r\n",
}


def in_warc(folder: Path, head: bytes, body: bytes) -> Path:
    (folder / "x.warc").write_bytes(page() + record("response", STYLE, head + b"\r\n\r\n" + body))
    return folder / "x.warc"


def in_raw_responses(folder: Path, head: bytes, body: bytes) -> Path:
    host = folder / "raw" / "shop.example"
    host.mkdir(parents=True)
    (host / "index.html").write_bytes(message(DOCUMENT, "Content-Type: text/html"))
    (host / "a.css").write_bytes(head + b"\r\n\r\n" + body)
    return folder / "raw"


def in_save_files(folder: Path, head: bytes, body: bytes) -> Path:
    """Write an exchange as Mahimahi would: a line that ends with a bare line feed becomes a value that contains one."""
    (folder / "save").mkdir()
    (folder / "save" / "save.0").write_bytes(save_file(host="shop.example"))
    status, *fields = head.decode("latin-1").split("\r\n")
    headers = tuple((name, value.strip()) for name, _, value in (field.partition(":") for field in fields))
    style_file = save_file("/a.css", host="shop.example", status=status, headers=headers, body=body)
    (folder / "save" / "save.1").write_bytes(style_file)
    return folder / "save"


AS_SENT = pytest.mark.parametrize("make", [in_warc, in_raw_responses, in_save_files])
Make = Callable[[Path, bytes, bytes], Path]


@pytest.mark.case("warc-chunks-break-off")
@AS_SENT
@pytest.mark.parametrize("body", TRUNCATED.values(), ids=TRUNCATED)
def test_a_chunked_body_that_breaks_off_is_left_out_by_name(make: Make, body: bytes, tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked"
    recording = read_recording(make(tmp_path, head, body))
    (line,) = recording.skipped
    assert len(recording.exchanges) == 1 and "its chunked body breaks off" in line


@AS_SENT
@pytest.mark.parametrize("body", [RULE, b"11\r\np { color: navy }\r\n0\r\n\r\n"], ids=["without chunks", "chunked"])
def test_a_chunked_body_is_taken_with_its_framing_or_without(make: Make, body: bytes, tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked"
    recording = read_recording(make(tmp_path, head, body))
    assert not recording.skipped and bodies(recording)[STYLE] == RULE


@AS_SENT
@pytest.mark.parametrize("end", [b"\r\n", b"\r\n\r\n"])
def test_a_line_end_behind_a_body_of_known_length_is_no_part_of_it(make: Make, end: bytes, tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 17"
    recording = read_recording(make(tmp_path, head, RULE + end))
    assert not recording.skipped and bodies(recording)[STYLE] == RULE


@pytest.mark.case("warc-record-cut-short")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("cut", [5, 20])
def test_a_record_that_the_archive_ends_within_is_left_out_by_name(packed: bool, cut: int, tmp_path: Path) -> None:
    records = [page(), style()[:-cut]]
    content = [gzip.compress(one) if packed else one for one in records]
    recording = imported(tmp_path, *content, name="x.warc.gz" if packed else "x.warc")
    assert bodies(recording) == {HOME: DOCUMENT}
    assert recording.skipped[0].startswith(f"{STYLE}: it is cut short: its record has ")


def test_a_record_that_says_it_was_truncated_is_left_out_by_name(tmp_path: Path) -> None:
    recording = imported(tmp_path, page(), style(WARC_Truncated="length"))
    assert recording.skipped == (f"{STYLE}: it is cut short, as its record says (length)",)


@pytest.mark.parametrize("length", [40, 59, 99])
def test_a_record_of_another_length_than_it_says_is_left_out_by_name(length: int, tmp_path: Path) -> None:
    lying = record("response", STYLE, message(RULE, "Content-Type: text/css"), length)
    other = response("https://shop.example/b.css", RULE, "Content-Type: text/css")
    recording = imported(tmp_path, page(), lying, other, page("https://shop.example/2"))
    assert STYLE not in bodies(recording) and "https://shop.example/2" in bodies(recording)
    assert recording.skipped[0].startswith(f"{STYLE}: ")


# One broken record.


@pytest.mark.case("warc-record-without-uri")
def test_a_record_without_a_url_is_left_out_by_name_and_those_behind_it_are_taken(tmp_path: Path) -> None:
    recording = imported(tmp_path, page(), response("", b"x", WARC_Record_ID="<urn:7>"), style())
    assert bodies(recording) == {HOME: DOCUMENT, STYLE: RULE}
    assert recording.skipped == ("x.warc, record urn:7: it has no URL (WARC-Target-URI)",)


def without_length(content: bytes) -> bytes:
    return content.replace(b"Content-Length", b"X-Length")


@pytest.mark.parametrize(
    "bad",
    [
        response("https://b.example/x", b"", status="2"),
        record("response", "https://b.example/x", b"no HTTP"),
        record("conversion", "https://b.example/x", b"text"),
        record("", "https://b.example/x", b"text"),
        without_length(response("https://b.example/x", b"x")),
        b"not a record\r\n\r\n",
        b"WARC/1.0\r\n\r\n",
    ],
    ids=["no status", "no message", "conversion", "no kind", "no length", "text", "no fields"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_bad_record_costs_itself_and_one_line(bad: bytes, packed: bool, tmp_path: Path) -> None:
    content = [gzip.compress(one) if packed else one for one in (page(), bad, style())]
    recording = imported(tmp_path, *content)
    assert bodies(recording) == {HOME: DOCUMENT, STYLE: RULE}
    assert len(recording.skipped) == 1 and recording.skipped[0].isprintable()


@pytest.mark.parametrize("place", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("damage", [b"\xff" * 12, b""], ids=["other bytes", "lost bytes"])
def test_a_damaged_part_of_a_packed_archive_costs_its_record(place: float, damage: bytes, tmp_path: Path) -> None:
    packed = gzip.compress(style())
    at = int(place * (len(packed) - 12))
    damaged = packed[:at] + damage + packed[at + 12 :]
    recording = imported(tmp_path, gzip.compress(page()), damaged, gzip.compress(page("https://shop.example/2")))
    assert bodies(recording) == {HOME: DOCUMENT, "https://shop.example/2": DOCUMENT}
    assert len(recording.skipped) == 1


@pytest.mark.parametrize("field", [b"\x04", b"\x08"], ids=["further fields", "a name"])
@pytest.mark.parametrize("records", [3, 3000])
def test_a_packed_part_whose_damaged_head_covers_others_costs_itself(
    field: bytes, records: int, tmp_path: Path
) -> None:
    """The header announces further fields of 65,535 bytes, or a name, which ends at the next zero."""
    packed = gzip.compress(style())
    damaged = packed[:3] + field + packed[4:10] + b"\xff\xff" + packed[10:]
    urls = [f"{HOME}{number}" for number in range(records)]
    recording = imported(tmp_path, gzip.compress(page()), damaged, *(gzip.compress(page(url)) for url in urls))
    assert bodies(recording) == dict.fromkeys((HOME, *urls), DOCUMENT)
    assert len(recording.skipped) == 1


@pytest.mark.case("warc-packed-as-a-whole")
def test_an_archive_that_was_packed_as_a_whole_is_imported(tmp_path: Path) -> None:
    recording = imported(tmp_path, gzip.compress(page() + style()), name="x.warc.gz")
    assert bodies(recording) == {HOME: DOCUMENT, STYLE: RULE} and not recording.skipped


def test_records_may_be_packed_across_their_bounds(tmp_path: Path) -> None:
    content = page() + style()
    parts = [gzip.compress(content[at : at + 100]) for at in range(0, len(content), 100)]
    recording = imported(tmp_path, *parts, b"\0" * 9, name="x.warc.gz")
    assert bodies(recording) == {HOME: DOCUMENT, STYLE: RULE} and not recording.skipped


# Records of other kinds.


@pytest.mark.case("warc-resource-records")
def test_a_resource_record_is_a_response(tmp_path: Path) -> None:
    resources = [record("resource", HOME, DOCUMENT, Content_Type="text/html")]
    resources += [record("resource", STYLE, RULE, Content_Type="text/css")]
    recording = imported(tmp_path, *resources, record("resource", "file:///etc/x", b"x"), record("warcinfo", "", b""))
    assert bodies(recording) == {HOME: DOCUMENT, STYLE: RULE}
    assert [e.response.header("content-type") for e in recording.exchanges] == ["text/html", "text/css"]
    (line,) = recording.skipped
    assert line.startswith("file:///etc/x: ")


# Header fields.


@pytest.mark.case("warc-location-in-utf8")
@pytest.mark.parametrize(("location", "target"), [("/caf\xc3\xa9", "/caf%C3%A9"), ("/caf\xe9", "/caf%C3%A9")])
def test_bytes_of_header_fields_stay_and_lead_where_browsers_go(location: str, target: str, tmp_path: Path) -> None:
    redirect = response(HOME, b"", f"Location: {location}", status="302 Found")
    recording = imported(tmp_path, redirect, page(f"https://shop.example{target}"))
    assert recording.url == HOME
    assert recording.exchanges[0].response.headers == (("Location", location),)


@pytest.mark.parametrize("location", ["https://www.shop.example", "//www.shop.example", "https://www.shop.example#top"])
def test_a_redirect_to_a_url_without_a_path_leads_to_its_page(location: str, tmp_path: Path) -> None:
    redirect = response(HOME, b"", f"Location: {location}", status="301 Moved")
    frame = page("https://a.example/frame", DOCUMENT * 9)
    recording = imported(
        tmp_path, frame, redirect, page("https://www.shop.example/"), *asked_by("https://www.shop.example/")
    )
    assert recording.url == HOME


def asked_by(url: str, agent: str = "B/1", count: int = 3) -> list[bytes]:
    """Requests with this referrer, and their responses."""
    exchanges = []
    for number in range(count):
        place = f"https://cdn.example/{agent}/{number}"
        head = f"GET / HTTP/1.1\r\nReferer: {url}\r\nUser-Agent: {agent}\r\n\r\n".encode()
        exchanges += [record("request", place, head), response(place, b"x")]
    return exchanges


@pytest.mark.case("raw-response-bare-line-feed")
@AS_SENT
def test_a_bare_line_feed_ends_a_header_field(make: Make, tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\nX-Note: edited by hand\r\nX-Last: yes"
    (answer,) = (e.response for e in read_recording(make(tmp_path, head, RULE)).exchanges if e.url == STYLE)
    assert answer.headers == (("Content-Type", "text/css"), ("X-Note", "edited by hand"), ("X-Last", "yes"))
    assert answer.body == RULE


def test_a_head_of_bare_line_feeds_ends_at_its_empty_line(tmp_path: Path) -> None:
    source = in_raw_responses(tmp_path, b"HTTP/1.1 200 OK\r\n", RULE)
    (source / "shop.example" / "a.css").write_bytes(b"HTTP/1.1 200 OK\nX-Folded : one\n two\n\n" + RULE)
    (answer,) = (e.response for e in read_recording(source).exchanges if e.url == STYLE)
    assert (answer.headers, answer.body) == ((("X-Folded", "one two"),), RULE)


# Requests and their responses.

POST = b"POST /basket HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\na=1"


@pytest.mark.case("warc-post-linked-from-response")
@pytest.mark.parametrize(
    ("of_request", "of_response"),
    [
        ({}, {"WARC_Concurrent_To": "<urn:1>"}),
        ({"WARC_Concurrent_To": "<urn:2>"}, {}),
        ({"WARC_Date": "2026-03-01T10:00:07Z"}, {"WARC_Date": "2026-03-01T10:00:07.000Z"}),
        ({}, {"WARC_Date": "2026-03-01T10:00:01Z"}),
    ],
    ids=["by the response", "by the request", "by their date", "by their URL"],
)
@pytest.mark.parametrize("request_is_first", [True, False])
def test_a_request_and_its_response_belong_together(
    of_request: dict[str, str], of_response: dict[str, str], request_is_first: bool, tmp_path: Path
) -> None:
    request = record("request", BASKET, POST, None, **{"WARC_Record_ID": "<urn:1>", **of_request})
    answer = response(BASKET, b"{}", **{"WARC_Record_ID": "<urn:2>", **of_response})
    pair = [request, answer] if request_is_first else [answer, request]
    recording = imported(tmp_path, page(), *pair)
    assert [e.method for e in recording.exchanges if e.url == BASKET] == ["POST"]


def test_a_request_whose_response_is_lost_is_no_other_response_s(tmp_path: Path) -> None:
    request = record("request", BASKET, POST, WARC_Concurrent_To="<urn:lost>", WARC_Date="2026-03-01T10:00:07Z")
    recording = imported(tmp_path, page(), request, response(BASKET, b"{}"))
    assert [e.method for e in recording.exchanges] == ["GET", "GET"]


def test_many_exchanges_of_one_url_are_paired_in_their_order(tmp_path: Path) -> None:
    methods = ["GET", "POST", "PUT"]
    requests = [
        record("request", BASKET, f"{method} / HTTP/1.1\r\n\r\n".encode(), WARC_Record_ID=f"<urn:{method}>")
        for method in methods
    ]
    answers = [response(BASKET, method.encode(), WARC_Record_ID=f"<urn:of-{method}>") for method in methods]
    recording = imported(tmp_path, page(), *answers, *requests)
    assert [(e.method, e.response.body.decode()) for e in recording.exchanges[1:]] == [(m, m) for m in methods]


def test_the_user_agent_is_that_of_the_page_and_not_that_of_most_requests(tmp_path: Path) -> None:
    ask = record("request", HOME, b"GET / HTTP/1.1\r\nUser-Agent: Browser/1\r\n\r\n")
    helpers = asked_by("https://crawler.example/", "Helper/2", 9)
    assert imported(tmp_path, ask, page(), *helpers).user_agent == "Browser/1"
    assert imported(tmp_path, page(), *asked_by(HOME, "Browser/1"), *helpers).user_agent == "Browser/1"
    assert imported(tmp_path, page(), *helpers).user_agent == "Helper/2"


# Pages listed in the archive.

OTHER = "https://shop.example/other"


MINUTES = {OTHER: 5, HOME: 1}


@pytest.mark.parametrize(
    ("form", "start"), [("202603011000{:02}", HOME), (f"{DATE[:14]}{{:02}}:00Z", HOME), ("x", OTHER)]
)
def test_pages_that_an_archive_lists_are_in_the_order_of_their_dates(form: str, start: str, tmp_path: Path) -> None:
    pages = [{"url": url, "timestamp": form.format(minute)} for url, minute in MINUTES.items()]
    info = record("warcinfo", "", f"json-metadata: {json.dumps({'pages': pages})}\r\n".encode())
    assert imported(tmp_path, info, page(OTHER), page(HOME)).url == start


def test_pages_with_a_record_each_are_in_the_order_of_their_dates(tmp_path: Path) -> None:
    details = [
        record("resource", f"urn:pageinfo:{url}", b"{}", WARC_Date=f"2026-03-01T10:0{minute}:00Z")
        for url, minute in MINUTES.items()
    ]
    assert imported(tmp_path, *details, page(OTHER), page(HOME)).url == HOME


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([response(HOME, DOCUMENT, "Content-Type: text/html", status="403 Forbidden")], "has a response of status 403"),
        ([], "was not recorded"),
    ],
)
def test_a_listed_page_at_which_no_site_can_begin_is_named(records: list[bytes], why: str, tmp_path: Path) -> None:
    details = record("resource", f"urn:pageinfo:{HOME}", b"{}")
    recording = imported(tmp_path, details, *records, page(OTHER))
    assert recording.url == OTHER
    (line,) = recording.skipped
    assert line.startswith("shop.example/ as the start: the archive lists it, ") and why in line


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("20260301100000", 1772359200000.0),
        (DATE, 1772359200000.0),
        ("2026-03-01T11:00:00.250+01:00", 1772359200250.0),
        ("99999999999999", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_dates_of_archives(text: object, ms: float | None) -> None:
    assert moment_ms(text) == ms


def test_an_archive_of_nothing_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="a record of the kind conversion is not a response"):
        imported(tmp_path, record("conversion", HOME, b"text"))
