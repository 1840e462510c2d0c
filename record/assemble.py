"""Makes a recording of the exchanges of an importer: all in https, with a start page and the recorder's name."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from base.errors import EyelevelError
from base.text import excerpt, printable
from record.content import UndecodableContent, decode_beginning
from record.http1 import MalformedMessage, first_value
from record.index import is_user_agent
from record.intake import Intake
from record.limits import LINE_LETTERS, USER_AGENT_BYTES
from record.site import Exchange, Recording
from record.upgrade import upgrade
from record.urls import joined, normal_url

# Documents that were loaded before the page (a login, a consent, a start of the browser's own) are the referrers of a
# few requests, too. A document may be the start if it is the referrer of at least this share of the number of requests
# that the most frequent referrer has.
NAMED_SHARE = 0.1
# Marks near the beginning of an HTML document, which no text has; and the first bytes of pictures.
MARKUP = re.compile(rb"<[a-z!]", re.IGNORECASE)
PICTURES = (b"GIF8", b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
MARKUP_BYTES = 1 << 16
# The number of likely pages that an error names, and the letters of each URL.
LIKELY, LIKELY_LETTERS = 5, 200


def assemble(intake: Intake, recorder: dict[str, str], *, listed: Iterable[str] = ()) -> Recording:
    """The recording of the exchanges in `intake`, in recorded order.

    `listed`: the URLs that the archive itself lists as its pages, in its order.

    Raises EyelevelError when there is no exchange, or none of them is a page.
    """
    source = intake.source
    exchanges, duplicates = upgrade(intake.exchanges)
    skipped = [printable(line) for line in (*intake.all_skipped(), *duplicates)]
    if not exchanges:
        raise EyelevelError(
            f"{source} holds no exchange that can be replayed "
            f"({'; '.join(line[:300] for line in skipped[:3]) or 'it is empty'})"
        )
    agent = user_agent(exchanges)
    if agent is not None and not is_user_agent(agent):
        skipped.append(f"User-Agent: not printable, or longer than {USER_AGENT_BYTES} bytes; the browser sends its own")
        agent = None
    texts = {**recorder, "source": source, "cookies": "as sent" if intake.keep_cookies else "stand-ins"}
    return Recording(
        url=start_page(exchanges, source, listed).url,
        exchanges=tuple(_timed_from_first(exchanges)),
        recorder={name: printable(text[:LINE_LETTERS]) for name, text in texts.items()},
        user_agent=agent,
        skipped=tuple(skipped),
        connections=tuple(intake.connections),
    )


def _timed_from_first(exchanges: list[Exchange]) -> list[Exchange]:
    """The exchanges with times that count from the earliest."""
    begin_ms = min((e.started_ms for e in exchanges if e.started_ms is not None), default=0.0)
    return [e if e.started_ms is None else replace(e, started_ms=round(e.started_ms - begin_ms, 3)) for e in exchanges]


def chosen_page(exchanges: Sequence[Exchange], url: str) -> str:
    """The recorded URL that `url` means. Raises EyelevelError, with the likely ones, when there is none."""
    try:
        wanted = _without_scheme(normal_url(url))
    except MalformedMessage as error:
        raise EyelevelError(f"--url: {error}") from None
    urls = [exchange.url for exchange in exchanges if exchange.method == "GET"]
    match = next(
        (url for url in urls if wanted in (_without_scheme(url), _without_scheme(url).removesuffix("/"))), None
    )
    if match is None:
        likely = ", ".join(dict.fromkeys(e.url[:LIKELY_LETTERS] for e in likely_starts(exchanges)[:LIKELY]))
        raise EyelevelError(f"--url: {excerpt(url)} was not recorded; likely ones are: {likely or 'none'}")
    return match


def start_page(exchanges: Iterable[Exchange], source: str, listed: Iterable[str] = ()) -> Exchange:
    """The exchange that the browser began with.

    It is the first of the URLs that the archive itself lists as its pages (`listed`), if it was recorded. Otherwise it
    is the first document by time that others name as their referrer, or where times are not known, the one that most
    name. When redirects led to this document, the first redirect is returned. Raises EyelevelError when there is no
    page.
    """
    exchanges = list(exchanges)
    recorded = {_without_scheme(e.url): e for e in reversed(exchanges) if e.method == "GET"}
    listed_page = next((recorded[url] for url in map(_listed, listed) if url in recorded), None)
    if listed_page is not None and (_is_page(listed_page) or _target(listed_page)):
        return _first_redirect(listed_page, exchanges)
    starts = likely_starts(exchanges)
    if not starts:
        raise EyelevelError(f"{source} holds no HTML page to start from")
    return _first_redirect(starts[0], exchanges)


def likely_starts(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The documents that a browser may have begun with, the likeliest first; none when there is no HTML page."""
    exchanges = list(exchanges)
    # A page that loads itself again, or that scripts ask for, names itself.
    names = Counter(_referrer(e) for e in exchanges if _referrer(e) != _without_scheme(e.url))
    documents = [e for e in exchanges if e.method == "GET" and _is_page(e)]
    if not documents:
        return []
    # Most start pages have no referrer. One that was entered by a link has a referrer outside the recording.
    recorded = {_without_scheme(e.url) for e in exchanges}
    entries = [
        e
        for e in exchanges
        if e.method == "GET"
        and (_is_page(e) or _target(e))
        and (_referrer(e) not in recorded or _referrer(e) == _without_scheme(e.url))
    ]
    # A recording without requests has no referrers.
    most = max((_named(e, names) for e in entries), default=0)
    named = [e for e in entries if most and _named(e, names) >= NAMED_SHARE * most]
    candidates = named or [e for e in entries if _is_page(e)] or documents

    def likelihood(exchange: Exchange) -> tuple[float, int, bool, int]:
        started_ms = math.inf if exchange.started_ms is None else exchange.started_ms
        return (started_ms, -_named(exchange, names), not _is_page(exchange), -len(exchange.response.body))

    return sorted(candidates, key=likelihood)


def _first_redirect(start: Exchange, exchanges: Iterable[Exchange]) -> Exchange:
    """The first of the redirects that led to `start`, or `start` itself."""
    redirects: dict[str | None, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.method == "GET" and not _is_later(exchange, start):
            redirects[_target(exchange)].append(exchange)
    seen = {start.url}
    while origin := next((e for e in redirects[start.url] if e.url not in seen), None):
        seen.add(origin.url)
        start = origin
    return start


def _is_later(one: Exchange, other: Exchange) -> bool:
    return one.started_ms is not None and other.started_ms is not None and one.started_ms > other.started_ms


def _named(exchange: Exchange, names: Counter[str]) -> int:
    """How many others name the exchange as their referrer; to other origins browsers name its origin alone."""
    url = _without_scheme(exchange.url)
    origin = url.partition("/")[0] + "/"
    return names[url] + (names[origin] if origin != url else 0)


def _listed(url: str) -> str:
    """A URL of an archive's own list in the form to compare; "" for what is none."""
    try:
        return _without_scheme(normal_url(url))
    except MalformedMessage:
        return ""


def user_agent(exchanges: Iterable[Exchange]) -> str | None:
    """The user agent of most requests."""
    agents = Counter(first_value(e.request_headers, "user-agent") for e in exchanges)
    return agents.most_common(1)[0][0] if agents else None


def _referrer(exchange: Exchange) -> str:
    return _without_scheme(first_value(exchange.request_headers, "referer") or "")


def _without_scheme(url: str) -> str:
    """`url` in a form to compare: referrers keep the scheme of the recording, and URLs may have been upgraded."""
    return url.partition("://")[2]


def _is_page(exchange: Exchange) -> bool:
    """Whether it is an HTML document. Tracking pixels and cookie exchanges have only the type text/html."""
    response = exchange.response
    if response.status != 200 or not response.is_html:
        return False
    try:
        text = decode_beginning(response.body, response.encoding)
    except UndecodableContent:
        return bool(response.body)
    beginning = text[:MARKUP_BYTES].replace(b"\0", b"")  # of UTF-16
    return not text.startswith(PICTURES) and MARKUP.search(beginning) is not None


def _target(exchange: Exchange) -> str | None:
    location = exchange.response.header("location")
    return joined(exchange.url, location) if location and exchange.response.status // 100 == 3 else None
