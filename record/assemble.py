"""Makes a recording from an importer's exchanges: everything in https, with a start page and the recorder's name."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from base.errors import EyelevelError
from base.text import excerpt, printable
from record.content import UndecodableContent, decode_beginning
from record.http1 import MalformedMessage, first_value
from record.index import is_user_agent
from record.intake import Intake
from record.limits import LINE_LETTERS, USER_AGENT_BYTES
from record.logins import without_logins
from record.site import Exchange, Recording
from record.upgrade import upgrade
from record.urls import normal_url, redirected

# The key of `Site.recorder` with the time of the recording, in ISO 8601.
RECORDED = "recorded"
FIRST_YEAR = 1970
# Documents that were loaded before the page (a login, a consent, a start page of the browser) are also referrers of a
# few requests. A document may be the start if it is the referrer of at least this many requests, as a share of the
# requests of the most frequent referrer.
NAMED_SHARE = 0.1
# Marks near the beginning of an HTML document that never occur in plain text; and the first bytes of pictures.
MARKUP = re.compile(rb"<[a-z!]", re.IGNORECASE)
PICTURES = (b"GIF8", b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
MARKUP_BYTES = 1 << 16
# An error names this many likely pages, and shows this many letters of each URL.
LIKELY, LIKELY_LETTERS = 5, 200


def assemble(intake: Intake, recorder: dict[str, str], *, listed: Iterable[str] = ()) -> Recording:
    """The recording of the exchanges in `intake`, in recorded order.

    `listed`: the URLs that the archive itself lists as its pages, in its order.

    Raises EyelevelError when there is no exchange, or none of them is a page.
    """
    source = intake.source
    exchanges, duplicates = upgrade(intake.exchanges, source)
    exchanges, logins = without_logins(exchanges)
    if not exchanges:
        left_out = first_lines(printable(line) for line in (*intake.all_skipped(), *duplicates, *logins))
        raise EyelevelError(f"{source} holds no exchange that can be replayed ({left_out or 'it is empty'})")
    start = start_page(exchanges, listed, intake)
    skipped = [printable(line) for line in (*intake.all_skipped(), *duplicates, *logins)]
    agent = user_agent(exchanges, start.url)
    if agent is not None and not is_user_agent(agent):
        skipped.append(f"User-Agent: not printable, or longer than {USER_AGENT_BYTES} bytes; the browser sends its own")
        agent = None
    dated = {RECORDED: date.isoformat(timespec="seconds")} if (date := _began_at(exchanges)) else {}
    texts = {**dated, **recorder, "source": source, "cookies": "as sent" if intake.keep_cookies else "stand-ins"}
    return Recording(
        url=start.url,
        exchanges=tuple(_timed_from_first(exchanges)),
        recorder={name: printable(text[:LINE_LETTERS]) for name, text in texts.items()},
        user_agent=agent,
        skipped=tuple(skipped),
        connections=tuple(intake.connections),
    )


def _began_at(exchanges: list[Exchange]) -> datetime | None:
    """When the first of `exchanges` began; None if their times do not count from 1970, as in our own archives."""
    with suppress(ValueError, OverflowError):
        began = datetime.fromtimestamp(min(e.started_ms for e in exchanges if e.started_ms is not None) / 1000, UTC)
        return began if began.year > FIRST_YEAR else None
    return None


def _timed_from_first(exchanges: list[Exchange]) -> list[Exchange]:
    """The exchanges, with times counted from the earliest."""
    begin_ms = min((e.started_ms for e in exchanges if e.started_ms is not None), default=0.0)
    return [e if e.started_ms is None else replace(e, started_ms=round(e.started_ms - begin_ms, 3)) for e in exchanges]


def beginning_at(recording: Recording, url: str) -> Recording:
    """`recording` with the page that `url` means as its start. Raises EyelevelError (`chosen_page`)."""
    page = chosen_page(recording.exchanges, url)
    if page == recording.url:
        return recording
    agent = user_agent(recording.exchanges, page)
    # `recording.live` describes the load of the recording's own start page, so it is dropped for another page.
    return replace(recording, url=page, user_agent=agent if is_user_agent(agent) else None, live=None)


def chosen_page(exchanges: Sequence[Exchange], url: str) -> str:
    """The recorded URL that `url` means. Raises EyelevelError, which lists likely URLs, when there is none."""
    try:
        wanted = _comparable(normal_url(url))
    except MalformedMessage as error:
        raise EyelevelError(f"--url: {error}") from None
    urls = [exchange.url for exchange in exchanges if exchange.method == "GET"]
    match = next((url for url in urls if wanted in (_comparable(url), _comparable(url).removesuffix("/"))), None)
    if match is None:
        likely = ", ".join(dict.fromkeys(e.url[:LIKELY_LETTERS] for e in likely_starts(exchanges)[:LIKELY]))
        raise EyelevelError(f"--url: {excerpt(url)} was not recorded; likely ones are: {likely or 'none'}")
    return match


def first_lines(skipped: Iterable[str]) -> str:
    """The first lines about what was left out, for an error. The line about the page itself is among them."""
    return "; ".join(line[:300] for line in islice(skipped, 3))


def start_page(exchanges: Iterable[Exchange], listed: Iterable[str], intake: Intake) -> Exchange:
    """The exchange that the browser began with.

    The archive may list its pages (`listed`): then this is the first listed URL with a recorded page; the listed URLs
    before it are left out of the `intake`, with the reason. Otherwise it is the first document by time that others name
    as their referrer; if times are unknown, the document that most others name. If redirects led to this document, the
    first redirect is returned. Raises EyelevelError, which says what was left out, when there is no page.
    """
    exchanges = list(exchanges)
    recorded = {_comparable(e.url): e for e in reversed(exchanges) if e.method == "GET"}
    for url in filter(None, map(_listed, listed)):
        page = recorded.get(url)
        if page is not None and (_is_page(page) or _target(page)):
            return _first_redirect(page, exchanges)
        why = (
            "was not recorded"
            if page is None
            else f"has a response of status {page.response.status} that is not a page"
        )
        intake.leave_out(f"{url} as the start", f"the archive lists it, and it {why}; --url chooses")
    starts = likely_starts(exchanges)
    if not starts:
        left_out = first_lines(map(printable, intake.all_skipped()))
        raise EyelevelError(
            f"{intake.source} holds no HTML page to start from" + (f" (left out: {left_out})" if left_out else "")
        )
    return _first_redirect(starts[0], exchanges)


def likely_starts(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The documents that a browser may have begun with, the likeliest first; empty if there is no HTML page."""
    exchanges = list(exchanges)
    # A page that loads itself again, or that its scripts request, names itself as referrer.
    names = Counter(_referrer(e) for e in exchanges if _referrer(e) != _comparable(e.url))
    documents = [e for e in exchanges if e.method == "GET" and _is_page(e)]
    if not documents:
        return []
    # Most start pages have no referrer. One that was reached by a link has a referrer outside the recording.
    recorded = {_comparable(e.url) for e in exchanges}
    entries = [
        e
        for e in exchanges
        if e.method == "GET"
        and (_is_page(e) or _target(e))
        and (_referrer(e) not in recorded or _referrer(e) == _comparable(e.url))
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
    """How many other exchanges name this one as their referrer. Requests to other origins name only its origin."""
    url = _comparable(exchange.url)
    origin = url.partition("/")[0] + "/"
    return names[url] + (names[origin] if origin != url else 0)


def _listed(url: str) -> str:
    """A URL from an archive's list of pages, normalised for comparison; "" if it is malformed."""
    try:
        return _comparable(normal_url(url))
    except MalformedMessage:
        return ""


def user_agent(exchanges: Sequence[Exchange], start_url: str) -> str | None:
    """The user agent of the browser that loaded the page `start_url`, whatever other programs requested.

    It is the user agent of the request for the page. If several requests for the page have different ones, it is the
    one that most of the page's requests have. Without a request for the page, it is the most frequent one of the page's
    requests; without these, of all requests.
    """
    agents = [(e, agent) for e in exchanges if (agent := first_value(e.request_headers, "user-agent"))]
    of_page = Counter(agent for e, agent in agents if _referrer(e) == _comparable(start_url))
    for_page = Counter(agent for e, agent in agents if e.url == start_url)
    if for_page:
        return max(for_page, key=lambda agent: (of_page[agent], for_page[agent]))
    votes = of_page or Counter(agent for _, agent in agents)
    return votes.most_common(1)[0][0] if votes else None


def _referrer(exchange: Exchange) -> str:
    return _comparable(first_value(exchange.request_headers, "referer") or "")


def _comparable(url: str) -> str:
    """`url` without its scheme, for comparison: referrers keep the scheme of the recording, while URLs may have been
    upgraded."""
    return url.partition("://")[2]


def _is_page(exchange: Exchange) -> bool:
    """Whether the response is an HTML document. Tracking pixels and cookie exchanges may have the type text/html
    without being one."""
    response = exchange.response
    if response.status != 200 or not response.is_html:
        return False
    try:
        text = decode_beginning(response.body, response.encoding)
    except UndecodableContent:
        return bool(response.body)
    beginning = text[:MARKUP_BYTES].replace(b"\0", b"")  # UTF-16 contains zeros
    return not text.startswith(PICTURES) and MARKUP.search(beginning) is not None


def _target(exchange: Exchange) -> str | None:
    location = exchange.response.header("location")
    return redirected(exchange.url, location) if location and exchange.response.status // 100 == 3 else None
