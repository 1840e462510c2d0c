"""HARs as tools write them, whose bodies differ from those on the wire: after an import, a browser gets the original
bodies."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import har_entry, warc_record

from base.errors import EyelevelError
from record.content import decode, encode
from record.formats import har, read_recording
from record.http1 import Headers, Response
from record.intake import CHANGED
from record.privacy import without_credentials
from record.site import Exchange, Recording, write_site
from record.summary import summary

PAGE, STYLE = "https://a.example/", "https://a.example/a.css"
RUSSIAN = "<!doctype html><p>Привет, мир"
CSS = "p { color: navy }" * 9


def entry(url: str = PAGE, kind: str = "text/html; charset=utf-8", status: int = 200, **changes: Any) -> dict[str, Any]:
    """An entry of an archive. `changes` apply to its content; `encoding_field` is its content-encoding."""
    field = changes.pop("encoding_field", None)
    whole = har_entry(url, **{"text": "<!doctype html><p>", "mimeType": kind, **changes})
    headers = [("Content-Type", kind), *([("Content-Encoding", field)] if field else [])]
    whole["response"] |= {"status": status, "headers": [{"name": n, "value": v} for n, v in headers]}
    return whole


def packed(text: str, encoding: str) -> dict[str, Any]:
    return {"text": base64.b64encode(encode(text.encode(), encoding)).decode(), "encoding": "base64"}


def imported(entries: Iterable[Any], folder: Path) -> Recording:
    path = folder / "x.har"
    path.write_text(json.dumps({"log": {"entries": list(entries)}}))
    return read_recording(path)


def changes_of(recording: Recording) -> list[str]:
    return [line for line in recording.skipped if line.startswith(CHANGED)]


def content_of(exchange: Exchange) -> bytes:
    return decode(exchange.response.body, exchange.response.encoding)


@pytest.mark.case("har-text-in-another-charset")
@pytest.mark.parametrize(
    ("kind", "text", "codec"),
    [
        ("text/html; charset=windows-1251", RUSSIAN, "cp1251"),
        ('text/html;charset="KOI8-R"', RUSSIAN, "koi8-r"),
        ("text/html; charset=UTF-8", RUSSIAN, "utf-8"),
        ("text/html; charset=utf-16", RUSSIAN, "utf-16-le"),
        ("text/html; charset=iso-8859-1", "<!doctype html><p>10 € “café”", "cp1252"),
        ("text/html; charset=Shift_JIS", "<!doctype html><p>ソース\uff5e", "cp932"),
        ("text/html; charset=gb2312", "<!doctype html><p>中文€", "gb18030"),
        ("text/html", f'<!doctype html><meta charset="windows-1251">{RUSSIAN}', "cp1251"),
        ("text/html", f'<meta http-equiv=x content="text/html; charset=koi8-r">{RUSSIAN}', "koi8-r"),
        ("text/html", f"<meta charset=utf-16>{RUSSIAN}", "utf-8"),
        ("text/html; charset=windows-1251", f"\ufeff{RUSSIAN}", "utf-8"),
    ],
)
def test_text_is_sent_in_the_encoding_that_browsers_read_it_in(
    kind: str, text: str, codec: str, tmp_path: Path
) -> None:
    recording = imported([entry(kind=kind, text=text)], tmp_path)
    (exchange,) = recording.exchanges
    assert exchange.response.body == text.encode(codec)
    assert exchange.response.header("content-type") == kind and recording.skipped == ()


@pytest.mark.case("har-text-in-another-charset")
@pytest.mark.parametrize(
    ("kind", "text", "now"),
    [
        ("text/html; charset=windows-1251", "<!doctype html><p>日本", "text/html; charset=utf-8"),
        ("text/html; a=b; charset=none; c=d", RUSSIAN, "text/html; a=b; c=d; charset=utf-8"),
        ("text/html; charset=euc-jp", "<!doctype html><p>¥", "text/html; charset=utf-8"),
        ("text/html; charset=utf-7", RUSSIAN, "text/html; charset=utf-8"),
        ("text/html", RUSSIAN, "text/html; charset=utf-8"),
    ],
)
def test_text_that_its_encoding_cannot_hold_is_sent_as_utf_8_and_named(
    kind: str, text: str, now: str, tmp_path: Path
) -> None:
    recording = imported([entry(kind=kind, text=text)], tmp_path)
    (exchange,) = recording.exchanges
    assert (exchange.response.body, exchange.response.header("content-type")) == (text.encode(), now)
    (line,) = changes_of(recording)
    assert f"{PAGE}: is sent as UTF-8" in line


@pytest.mark.case("har-text-in-another-charset")
@pytest.mark.parametrize(("page", "count"), [("utf-8", 0), ("windows-1251", 1)])
def test_a_style_sheet_that_names_no_encoding_is_read_as_in_the_recording(
    page: str, count: int, tmp_path: Path
) -> None:
    style = 'p::before { content: "é" }'
    entries = [
        entry(kind=f"text/html; charset={page}"),
        entry(STYLE, "text/css", text=style),
        entry("https://a.example/b.css", "text/css", text='@charset "windows-1252";' + style),
        entry("https://a.example/x.json", "application/json", text='"é"'),
    ]
    recording = imported(entries, tmp_path)
    _, unnamed, named, data = recording.exchanges
    assert unnamed.response.body == style.encode() and data.response.body == '"é"'.encode()
    assert named.response.body.endswith(style.encode("cp1252"))
    assert unnamed.response.header("content-type") == ("text/css" if page == "utf-8" else "text/css; charset=utf-8")
    assert len(changes_of(recording)) == count


@pytest.mark.case("har-body-still-packed")
@pytest.mark.parametrize("encoding", ["br", "gzip", "deflate", "zstd", "gzip, br"])
def test_a_body_that_is_still_packed_is_kept_as_it_is(encoding: str, tmp_path: Path) -> None:
    contents = [packed(RUSSIAN, encoding), packed(CSS, encoding)]
    entries = [
        entry(url, kind, encoding_field=encoding, **content)
        for url, kind, content in zip((PAGE, STYLE), ("text/html; charset=utf-8", "text/css"), contents, strict=True)
    ]
    recording = imported(entries, tmp_path)
    assert [e.response.body for e in recording.exchanges] == [base64.b64decode(c["text"]) for c in contents]
    assert [content_of(e).decode() for e in recording.exchanges] == [RUSSIAN, CSS]


@pytest.mark.case("har-body-still-packed")
def test_a_body_that_has_lost_one_of_two_encodings_gets_it_again(tmp_path: Path) -> None:
    recording = imported([entry(), entry(STYLE, encoding_field="gzip, br", **packed(CSS, "gzip"))], tmp_path)
    assert content_of(recording.exchanges[1]).decode() == CSS


@pytest.mark.case("har-body-still-packed")
@pytest.mark.parametrize("text", [";", "\x06", "!function(){}", CSS])
@pytest.mark.parametrize("encoding", ["br", "gzip", "deflate", "zstd"])
def test_a_body_that_is_not_packed_any_more_is_packed(text: str, encoding: str, tmp_path: Path) -> None:
    plain: dict[str, Any] = {"text": base64.b64encode(text.encode()).decode(), "encoding": "base64"}
    recording = imported([entry(), entry(STYLE, encoding_field=encoding, **plain)], tmp_path)
    body = recording.exchanges[1].response.body
    assert body == encode(text.encode(), encoding)


@pytest.mark.case("har-body-still-packed")
def test_a_packed_file_that_was_sent_packed_again_is_known_by_its_length(tmp_path: Path) -> None:
    whole = entry(STYLE, encoding_field="gzip", **packed(CSS, "gzip"))
    whole["response"]["headers"].append({"name": "Content-Length", "value": "7"})
    recording = imported([entry(), whole], tmp_path)
    assert content_of(recording.exchanges[1]) == encode(CSS.encode(), "gzip")


@pytest.mark.case("har-zstd-is-unpacked")
def test_a_body_that_came_packed_by_zstd_is_packed_by_it(tmp_path: Path) -> None:
    recording = imported([entry(), entry(STYLE, encoding_field="zstd", text=CSS)], tmp_path)
    response = recording.exchanges[1].response
    assert response.encoding == "zstd" and len(response.body) < len(CSS) / 3
    assert content_of(recording.exchanges[1]).decode() == CSS and recording.skipped == ()


@pytest.mark.case("har-zstd-is-unpacked")
def test_a_body_that_cannot_be_packed_as_it_came_is_named(tmp_path: Path) -> None:
    recording = imported([entry(), entry(STYLE, encoding_field="dcz", text=CSS)], tmp_path)
    response = recording.exchanges[1].response
    assert (response.body.decode(), response.encoding) == (CSS, "")
    (line,) = changes_of(recording)
    assert f"{STYLE}: is sent without its content-encoding dcz" in line


@pytest.mark.case("har-304-with-body")
def test_a_body_out_of_a_warm_cache_is_sent_by_200_and_named(tmp_path: Path) -> None:
    bare = entry(STYLE, status=304, text=CSS, mimeType="text/css")
    bare["response"]["headers"] = []
    recording = imported([entry(), bare], tmp_path)
    response = recording.exchanges[1].response
    assert (response.status, response.body.decode(), response.header("content-type")) == (200, CSS, "text/css")
    (line,) = changes_of(recording)
    assert f"{STYLE}: was answered by 304" in line
    assert f"  {line}" in summary(write_site(recording, tmp_path / "site")).splitlines()


@pytest.mark.case("har-304-with-body")
@pytest.mark.parametrize("is_conditional", [True, False])
def test_a_body_that_stayed_in_a_warm_cache_is_named(is_conditional: bool, tmp_path: Path) -> None:
    bare = entry(STYLE, status=304, text="", size=0 if is_conditional else 9)
    if is_conditional:
        bare["request"]["headers"] = [{"name": "If-None-Match", "value": '"x"'}]
    recording = imported([entry(), bare], tmp_path)
    (line,) = recording.skipped
    assert len(recording.exchanges) == 1
    assert line.startswith(STYLE) and "304" in line and "empty cache" in line


@pytest.mark.case("har-entry-without-date")
@pytest.mark.parametrize("date", ["", "yesterday", None, 7])
def test_an_entry_without_a_date_keeps_its_place(date: Any, tmp_path: Path) -> None:
    entries = [entry(f"{PAGE}{number}") for number in range(4)]
    for number in (0, 2):
        entries[number]["startedDateTime"] = date
    del entries[3]["startedDateTime"]
    recording = imported(entries, tmp_path)
    assert [exchange.url for exchange in recording.exchanges] == [f"{PAGE}{number}" for number in range(4)]
    assert [exchange.started_ms for exchange in recording.exchanges][1] == 0 and recording.skipped == ()


@pytest.mark.case("har-header-without-value")
@pytest.mark.parametrize(
    ("field", "value"),
    [({"value": None}, ""), ({}, ""), ({"value": ""}, ""), ({"value": 7}, "7"), ({"value": True}, "true")],
)
def test_a_field_without_a_value_has_the_empty_one(field: dict[str, Any], value: str, tmp_path: Path) -> None:
    whole = entry()
    whole["response"]["headers"].append({"name": "x", **field})
    (exchange,) = imported([whole], tmp_path).exchanges
    assert exchange.response.header("x") == value


@pytest.mark.parametrize("place", ["request", "response"])
def test_an_entry_without_header_fields_is_taken(place: str, tmp_path: Path) -> None:
    whole = entry(STYLE)
    whole[place]["headers"] = None
    assert len(imported([entry(), whole], tmp_path).exchanges) == 2


@pytest.mark.case("har-not-utf8-is-printed")
@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
def test_a_file_in_another_encoding_is_named_and_not_printed(codec: str, tmp_path: Path) -> None:
    document = json.dumps({"log": {"entries": [entry(text="s3cret" * 9999)]}}).encode(codec)
    (tmp_path / "x.har").write_bytes(document[:200] + b"\xff\xdf" * 3 + document[200:] + b"\xd8")
    with pytest.raises(
        EyelevelError, match=r"not a HAR file: it is not UTF-(8: byte 200|16\S*: byte [0-9,]+) cannot"
    ) as error:
        read_recording(tmp_path / "x.har")
    assert len(str(error.value)) < 300 + len(str(tmp_path)) and "s3cret" not in str(error.value)


@pytest.mark.case("har-page-without-body")
@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (entry(text="", size=5000), "the archive does not hold its body"),
        (entry(status=0), "was not answered"),
        ({**entry(), "request": {"method": "CONNECT", "url": PAGE, "headers": []}}, "not a method that a page can use"),
        ({**entry(), "response": None}, "its entry is broken"),
        (entry(encoding_field="gzip", text="!", encoding="base64"), "not valid base64"),
    ],
)
def test_a_page_that_is_left_out_is_named_with_the_reason(page: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=f"x.har holds no HTML page to start from .left out: {PAGE}: .*{reason}"):
        imported([page, entry(STYLE, "text/css", text=CSS)], tmp_path)


@pytest.mark.case("har-page-without-body")
def test_a_page_left_out_of_a_warc_is_named_with_the_reason(tmp_path: Path) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\n\r\n<!doctype html>"
    style = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\np {}"
    (tmp_path / "x.warc").write_bytes(warc_record(PAGE, page) + warc_record(STYLE, style))
    with pytest.raises(
        EyelevelError, match=rf"no HTML page to start from \(left out: {PAGE}: its body is not valid br"
    ):
        read_recording(tmp_path / "x.warc")


@pytest.mark.case("har-websocket")
def test_a_websocket_is_named_and_what_needs_no_server_is_not(tmp_path: Path) -> None:
    others = [entry(url) for url in ("data:,x", "blob:https://a.example/1", "about:blank")]
    recording = imported([entry(), entry("wss://a.example/feed", status=101), *others], tmp_path)
    assert recording.skipped == ("wss://a.example/feed: is a WebSocket, which cannot be replayed",)


def test_an_entry_of_firefox_that_was_blocked_is_named_and_costs_nothing_else(tmp_path: Path) -> None:
    blocked = entry("https://tracker.example/", status=0, text="")
    recording = imported([entry(), {**blocked, "pageref": None}, 7], tmp_path)
    assert [exchange.url for exchange in recording.exchanges] == [PAGE]
    assert recording.skipped == (
        "https://tracker.example/: was not answered (status 0: blocked, cancelled or failed)",
        "1 of the archive's entries: are no objects",
    )


def test_a_body_that_firefox_has_cut_is_named(tmp_path: Path) -> None:
    whole = entry(STYLE, text="x" * (1 << 20), size=(1 << 20) + 1)
    recording = imported([entry(), whole], tmp_path)
    assert recording.skipped == (f"{STYLE}: the archive holds 1,048,576 of the 1,048,577 bytes of its body",)


@pytest.mark.case("redirect-to-plain-http")
@pytest.mark.parametrize("link", ["http://a.example/en/", "HTTP://a.example:80/en/"])
def test_a_redirect_to_a_url_that_was_recorded_over_https_alone_leads_there(link: str, tmp_path: Path) -> None:
    redirect = entry(status=301, text="")
    redirect["response"]["headers"].append({"name": "Location", "value": link})
    other = entry("https://a.example/x", status=302, text="")
    other["response"]["headers"].append({"name": "Location", "value": "http://b.example/"})
    recording = imported([redirect, entry(f"{PAGE}en/"), other], tmp_path)
    assert [exchange.response.header("location") for exchange in recording.exchanges] == [
        "https://a.example/en/",
        None,
        "http://b.example/",
    ]
    assert recording.url == PAGE


# Everything in a site survives the export to an archive.

NAMES = st.text("abcdefghijklmnopqrstuvwxyzX-", min_size=1, max_size=12).map(lambda name: f"X-{name}")
VALUES = st.text([chr(code) for code in (*range(0x21, 0x7F), *range(0x80, 0x100))], max_size=20)
ENCODINGS = st.sampled_from(["", "gzip", "br", "deflate", "zstd", "gzip, br", "dcz"])


@given(
    content=st.binary(max_size=200),
    encoding=ENCODINGS,
    fields=st.lists(st.tuples(NAMES, VALUES), max_size=4),
    status=st.sampled_from([200, 404]),
)
def test_content_and_fields_come_back_byte_for_byte(
    content: bytes, encoding: str, fields: Headers, status: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    headers = (("Content-Type", "text/css"), *fields, *([("Content-Encoding", encoding)] if encoding else []))
    body = content if encoding == "dcz" else encode(content, encoding)
    page = Exchange("GET", PAGE, Response(200, "OK", (("Content-Type", "text/html"),), b"<p>"), "192.0.2.1", 0.0)
    style = Exchange("GET", STYLE, Response(status, "", headers, body), "192.0.2.1", 1.0)
    folder = tmp_path_factory.mktemp("site")
    site = write_site(Recording(PAGE, (page, style), {"tool": "test"}), folder / "site")
    har.write(site, folder / "x.har")
    back = read_recording(folder / "x.har")
    assert back.skipped == ()
    response = back.exchanges[1].response
    assert response.status == status
    assert (response.body if encoding == "dcz" else decode(response.body, encoding)) == content
    sent = without_credentials(site.recorded(site.exchanges[1]).response.headers)
    assert [field for field in response.headers if field[0] != "Content-Length"] == [
        field for field in sent if field[0] != "Content-Length"
    ]


@pytest.mark.parametrize(
    ("written", "path", "sent"),
    [
        ("https://a.example/x?q=%7B1%7C2%7D", "/x?q={1|2}", "https://a.example/x?q={1|2}"),
        ("https://a.example/x?q=%7B1%7D", "/x?q=%7B1%7D", "https://a.example/x?q=%7B1%7D"),
        ("https://a.example/x?q=%7B1%7D", "/y", "https://a.example/x?q=%7B1%7D"),
    ],
    ids=["as Browsertime writes it", "as it was sent", "of another request"],
)
def test_a_url_is_imported_as_it_was_sent_over_http_2(written: str, path: str, sent: str, tmp_path: Path) -> None:
    """A request of the replay that asks for `{` finds its recording only under this URL."""
    of_query = entry(written)
    of_query["request"]["headers"] = [{"name": ":path", "value": path}]
    assert [exchange.url for exchange in imported([entry(), of_query], tmp_path).exchanges] == [PAGE, sent]
