"""Web archives (WARC, ISO 28500): responses in the order in which they began, each with its request.

A `resource` record, which has content but no response head, becomes a response with status 200. If a record has its
server's address (`WARC-IP-Address`), that is its server; otherwise every host gets a server of its own. Crawlers often
remove the chunk framing, but not the header field that announces it.
"""

import base64
import math
import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path

from base.bounded import open_regular, parse_json
from record.assemble import assemble
from record.content import Budget
from record.http1 import Headers, MalformedMessage, Response, response_of
from record.intake import Intake, with_true_length
from record.layout import authority_of
from record.limits import BODY_BYTES, EXCHANGES, HEAD_BYTES
from record.site import Exchange, Recording, kept_request_headers
from record.urls import normal_url
from record.warc_records import Archive, Record, records
from record.wire import normal_head

NAME = "warc"
DESCRIPTION = "a web archive"
ENDINGS = (".warc", ".warc.gz")

RESPONSE, REQUEST, RESOURCE = "response", "request", "resource"
# A record that repeats another record's body.
REVISIT = "revisit"
# Records that are no exchanges by themselves. The first segment of a split response is named as left out; further
# segments (`continuation`) are not.
BESIDE_EXCHANGES = ("warcinfo", REQUEST, "metadata", "continuation")
# The beginning of the URL of records in which Browsertrix lists its pages.
PAGE_INFO = "urn:pageinfo:"
# The note in sites from web archives about servers whose addresses were not recorded.
SERVERS = {"server_ips": "not recorded; one for each host"}

# Digest algorithm → the length of its values in bytes. The length of a value's text then shows its encoding.
DIGESTS_BYTES = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}

# The URL of a page that an archive lists, and its date in ms.
Listed = tuple[str, float | None]
Keys = Iterable[object]


def recognises(path: Path) -> bool:
    """Whether `path` is a recording in this format."""
    return path.is_file() and path.name.endswith(ENDINGS)


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the archive `path`. Broken records are left out and named. Raises EyelevelError."""
    intake = Intake(path.name, keep_cookies=keep_cookies)
    listed = take(intake, [Archive(path.name, lambda: os.fdopen(open_regular(path, follow=True), "rb"))])
    return assemble(intake, {"tool": NAME, **servers(intake)}, listed=listed)


def servers(intake: Intake) -> dict[str, str]:
    """The note about servers for the site of these exchanges; empty if all addresses were recorded."""
    return SERVERS if any(exchange.recorded_ip == authority_of(exchange.url) for exchange in intake.exchanges) else {}


def take(intake: Intake, archives: Sequence[Archive]) -> list[str]:
    """Let `intake` take the exchanges of `archives`, which form one recording, in the order in which they began.

    Returns the URLs of the pages that the archives list, by date.
    """
    # Requests are read first: they may follow their responses in the archive, and responses are too large to be held
    # until then.
    requests: list[_Event] = []
    responses: list[_Event] = []
    originals = _Originals()
    pages: list[Listed] = []
    for place, record in enumerate(records(archives, lambda *_: None)):
        if record.kind == REQUEST and len(requests) < EXCHANGES:
            requests += _request(place, record)
        elif record.kind in (RESPONSE, REVISIT) and len(responses) < EXCHANGES:
            responses.append(_Event.of(place, record))
        if record.kind == REVISIT:
            originals.want(record)
        elif len(pages) < EXCHANGES:
            pages += _pages(record)
    asked_by = _pairs(requests, responses)
    early: list[tuple[str, Callable[[], Exchange]]] = []
    for place, record in enumerate(records(archives, intake.leave_out)):
        if record.kind in BESIDE_EXCHANGES or record.url.startswith(PAGE_INFO):
            continue
        if record.kind == REVISIT:
            try:
                head = _head_of_revisit(record)
            except MalformedMessage as error:
                intake.leave_out(record.name, error)
                continue
            answer: Callable[[str], Response] = partial(_repeated, record, head, originals)
        else:
            answer = partial(_answer, record, intake.budget)
        request = asked_by.get(place, _Event(place))
        exchange = partial(_exchange, record, request, answer, originals)
        # The original of a repeating record may come after it, for example in another file of a collection.
        if record.kind == REVISIT and not originals.has(record) and len(early) < EXCHANGES:
            early.append((record.name, exchange))
        else:
            intake.take(record.name, exchange)
    for name, repeated in early:
        intake.take(name, repeated)
    # Crawlers write several archives at a time.
    intake.exchanges.sort(key=lambda exchange: _first_known(exchange.started_ms))
    return by_date(pages)


def by_date(pages: Iterable[Listed]) -> list[str]:
    """The URLs of `pages` in the order of their dates; those without a date come last."""
    return [url for url, _ in sorted(pages, key=lambda page: _first_known(page[1]))]


def moment_ms(text: object) -> float | None:
    """An archive's date (W3C-ISO 8601, or only its 14 digits) in ms since 1970; None if it is no date."""
    digits = str(text)
    try:
        moment = (
            datetime.strptime(digits, "%Y%m%d%H%M%S")
            if len(digits) == 14 and digits.isdecimal()
            else datetime.fromisoformat(digits)
        )
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        return None


def _first_known(time_ms: float | None) -> float:
    return math.inf if time_ms is None else time_ms


@dataclass(frozen=True)
class _Event:
    """One side of an exchange, with all that identifies the other side. `place` is the record's number among all
    records. `method` and `headers` are those of a request."""

    place: int
    id: str = ""
    others: frozenset[str] = frozenset()
    url: str = ""
    date_ms: float | None = None
    method: str = "GET"
    headers: Headers = ()

    @classmethod
    def of(cls, place: int, record: Record, method: str = "GET", headers: Headers = ()) -> "_Event":
        others = record.references("WARC-Concurrent-To")
        return cls(place, record.id, others, record.url, moment_ms(record.field("WARC-Date")), method, headers)


def _request(place: int, record: Record) -> list[_Event]:
    """The request in a record; empty if it cannot be read."""
    try:
        first, *lines = normal_head(record.head(is_whole=False)).decode("latin-1").split("\r\n")
    except MalformedMessage:
        return []
    fields = (line.partition(":") for line in lines)
    headers = kept_request_headers(tuple((name, value.strip()) for name, _, value in fields))
    return [_Event.of(place, record, first.partition(" ")[0], headers)] if first else []


def _pairs(requests: list[_Event], responses: list[_Event]) -> dict[int, _Event]:
    """The place of each response → its request.

    Records that refer to each other, in either direction, belong together (WARC 1.1, section 5.7). So do records of one
    event, which have the same URL and date (section 5.4). If dates differ, records with the same URL are paired in
    their order, provided that there are as many requests as responses for the URL.
    """
    pairs: dict[int, _Event] = {}
    used: set[int] = set()

    def pair(
        waiting: Iterable[_Event], keys: Callable[[_Event], Keys], keys_of_response: Callable[[_Event], Keys]
    ) -> None:
        by_key: dict[object, deque[_Event]] = defaultdict(deque)
        for request in waiting:
            for key in keys(request):
                by_key[key].append(request)
        for response in responses:
            for key in keys_of_response(response) if response.place not in pairs else ():
                of_key = by_key.get(key, deque())
                while of_key and of_key[0].place in used:
                    of_key.popleft()
                if of_key:
                    pairs[response.place] = of_key.popleft()
                    used.add(pairs[response.place].place)
                    break

    pair(
        requests,
        lambda request: [("from", request.id), *(("to", other) for other in request.others)],
        lambda response: [("to", response.id), *(("from", other) for other in response.others)],
    )
    pair(requests, *[lambda event: [(event.url, event.date_ms)]] * 2)
    alone = [one for one in requests if one.place not in used and not one.others]
    requests_of = Counter(request.url for request in alone)
    responses_of = Counter(response.url for response in responses if response.place not in pairs)
    whole = [request for request in alone if requests_of[request.url] == responses_of[request.url]]
    pair(whole, *[lambda event: [event.url]] * 2)
    return pairs


class _Originals:
    """The responses whose bodies other records repeat (`revisit`, WARC 1.1, section 6.7)."""

    def __init__(self) -> None:
        # A name of a response → the response, and its body's digest. Each of these names a response: its record's
        # identifier, its body's digest, its URL with its date, and its URL.
        self._kept: dict[tuple[object, ...], tuple[Response, tuple[str, object]] | None] = {}

    def want(self, revisit: Record) -> None:
        """Keep the response that this record repeats, once it comes."""
        if len(self._kept) < EXCHANGES:
            self._kept.update(dict.fromkeys(self._names_of_original(revisit)))

    def keep(self, record: Record, response: Response) -> None:
        """Keep `response` if a record repeats it."""
        digest, date = _digest(record), moment_ms(record.field("WARC-Date"))
        for key in (("id", record.id), ("digest", *digest), ("url", record.url, date), ("url", record.url)):
            if key in self._kept:
                self._kept[key] = (response, digest)

    def has(self, revisit: Record) -> bool:
        """Whether the response that this record repeats has come."""
        return any(self._kept.get(key) for key in self._names_of_original(revisit))

    def of(self, revisit: Record) -> Response:
        """The response that this record repeats. Raises MalformedMessage when there is none, or it has another body."""
        kept = next((kept for key in self._names_of_original(revisit) if (kept := self._kept.get(key))), None)
        if kept is None:
            raise MalformedMessage("it repeats a response that is not in the archive")
        response, digest = kept
        repeated = _digest(revisit)
        # Digests of different algorithms cannot be compared.
        if digest[0] == repeated[0] and digest[1] != repeated[1]:
            raise MalformedMessage("it repeats a response whose body has another digest than it says")
        return response

    @staticmethod
    def _names_of_original(revisit: Record) -> list[tuple[object, ...]]:
        """The names of the response that `revisit` repeats. The URL alone is one only if `revisit` has no date."""
        names: list[tuple[object, ...]] = []
        if original := next(iter(revisit.references("WARC-Refers-To")), ""):
            names.append(("id", original))
        digest = _digest(revisit)
        if digest[1]:
            names.append(("digest", *digest))
        if url := next(iter(revisit.references("WARC-Refers-To-Target-URI")), ""):
            date = revisit.field("WARC-Refers-To-Date")
            names.append(("url", url, moment_ms(date)) if date else ("url", url))
        return names


def _digest(record: Record) -> tuple[str, object]:
    """The algorithm and the value of the digest of a record's payload."""
    return parsed_digest(record.field("WARC-Payload-Digest"))


def parsed_digest(text: str) -> tuple[str, object]:
    """The algorithm of a digest (such as `sha256`) and its bytes. The text may be in any case, and in Base 16, 32 or 64
    (RFC 4648); a value in none of these stays a text."""
    label, _, value = text.strip().rpartition(":")
    algorithm = label.lower().replace("-", "").replace("_", "")
    size = DIGESTS_BYTES.get(algorithm, 0)
    digits = value.rstrip("=")
    try:
        if size and len(digits) == 2 * size:
            return algorithm, bytes.fromhex(digits)
        if size and len(digits) == math.ceil(size * 8 / 5):
            return algorithm, base64.b32decode(digits.upper() + "=" * (-len(digits) % 8))
        if size and len(digits) == math.ceil(size * 8 / 6):
            return algorithm, base64.urlsafe_b64decode(
                digits.replace("+", "-").replace("/", "_") + "=" * (-len(digits) % 4)
            )
    except ValueError:
        pass
    return algorithm, value


def _pages(record: Record) -> list[Listed]:
    """The pages that a record lists.

    Webrecorder lists them in `warcinfo` records. Browsertrix has a record `urn:pageinfo:URL` for each. Heritrix writes
    `metadata` records, in which `seed` marks the URLs that it began with.
    """
    date_ms = moment_ms(record.field("WARC-Date"))
    if record.url.startswith(PAGE_INFO):
        return [(record.url.removeprefix(PAGE_INFO), date_ms)]
    if record.kind not in ("warcinfo", "metadata"):
        return []
    fields = _fields(record)
    seeds = [(record.url, date_ms)] if record.kind == "metadata" and "seed" in fields else []
    return [*seeds, *_described_pages(fields.get("json-metadata", ""))]


def _fields(record: Record) -> dict[str, str]:
    """The `application/warc-fields` of a record; empty if they cannot be read."""
    try:
        text = record.rest(HEAD_BYTES).decode("utf-8", "replace")
    except MalformedMessage:
        return {}
    fields = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in fields}


def _described_pages(document: str) -> list[Listed]:
    """The pages in Webrecorder's description of a recording or a collection."""
    try:
        pages = parse_json(document.encode())["pages"]
        return [(page["url"], moment_ms(page.get("timestamp"))) for page in pages if isinstance(page["url"], str)]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


def _exchange(record: Record, request: _Event, answer: Callable[[str], Response], originals: _Originals) -> Exchange:
    if not record.url:
        raise MalformedMessage("it has no URL (WARC-Target-URI)")
    url = normal_url(record.url)
    response = answer(request.method)
    originals.keep(record, response)
    started_ms = moment_ms(record.field("WARC-Date"))
    return Exchange(request.method, url, response, _server(record, url), started_ms, request_headers=request.headers)


def _server(record: Record, url: str) -> str:
    """The address of the server that sent the response of `url`; the authority if the address was not recorded."""
    try:
        address = ip_address(record.field("WARC-IP-Address").strip())
    except ValueError:
        return authority_of(url)
    # A loopback address belongs to a proxy on the crawler's machine.
    return authority_of(url) if address.is_loopback or address.is_unspecified else str(address)


def _head_of_revisit(record: Record) -> Response | None:
    """The response head in a record that repeats a body; None if it has none. Raises MalformedMessage."""
    try:
        head = record.head(is_whole=False)
    finally:
        if fault := record.skip():
            raise MalformedMessage(fault)
    return _response(head) if head else None


def _repeated(revisit: Record, head: Response | None, originals: _Originals, method: str) -> Response:
    """The response of a record that repeats another's body; with its own `head`, if any, unless that has status 304."""
    original = originals.of(revisit)
    if head is None or head.status == HTTPStatus.NOT_MODIFIED:
        return original
    return head._replace(body=original.body)


def _answer(record: Record, budget: Budget, method: str) -> Response:
    """The response in a record. Raises MalformedMessage."""
    if record.kind not in (RESPONSE, RESOURCE):
        raise MalformedMessage(f"a record of the kind {record.kind or 'that it does not say'} is not a response")
    if record.field("WARC-Segment-Number"):
        raise MalformedMessage("its response is split into segments, which are not put together")
    if why := record.field("WARC-Truncated"):
        raise MalformedMessage(f"it is cut short, as its record says ({why})")
    if record.kind == RESOURCE:
        content_type = record.field("Content-Type")
        headers = (("Content-Type", content_type),) if content_type else ()
        return Response(200, "OK", headers, record.rest(BODY_BYTES + 1))
    response = _response(record.head())._replace(body=record.rest(BODY_BYTES + 1))
    return response if len(response.body) > BODY_BYTES else with_true_length(method, response, budget)


def _response(head: bytes) -> Response:
    """The response with this `head` and no body. Lines that are not header fields are ignored, as by browsers.

    Raises MalformedMessage.
    """
    first, *lines = normal_head(head).split(b"\r\n")
    return response_of(b"\r\n".join([first, *(line for line in lines if line.find(b":") > 0)]), b"")
