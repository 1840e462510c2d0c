"""Makes a recording of the exchanges of an importer: all in https, with a start page and the recorder's name."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from base.errors import EyelevelError
from base.text import printable
from record.http1 import first_value
from record.index import is_user_agent
from record.intake import Intake
from record.limits import LINE_LETTERS, USER_AGENT_BYTES
from record.site import Exchange, Recording
from record.upgrade import upgrade
from record.urls import joined


def assemble(intake: Intake, recorder: dict[str, str]) -> Recording:
    """The recording of the exchanges in `intake`, in recorded order.

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
        url=start_page(exchanges, source).url,
        exchanges=tuple(_timed_from_first(exchanges)),
        recorder={name: printable(text[:LINE_LETTERS]) for name, text in texts.items()},
        user_agent=agent,
        skipped=tuple(skipped),
    )


def _timed_from_first(exchanges: list[Exchange]) -> list[Exchange]:
    """The exchanges with times that count from the earliest."""
    begin_ms = min((e.started_ms for e in exchanges if e.started_ms is not None), default=0.0)
    return [e if e.started_ms is None else replace(e, started_ms=round(e.started_ms - begin_ms, 3)) for e in exchanges]


def start_page(exchanges: Iterable[Exchange], source: str) -> Exchange:
    """The exchange that the browser began with: the page that most others name as their referrer.

    When redirects led to this page, the first redirect is returned. Raises EyelevelError when there is no page.
    """
    exchanges = list(exchanges)
    referrers = Counter(_referrer(e) for e in exchanges)
    # Most start pages have no referrer. One that was entered by a link has a referrer outside the recording.
    outside = set(referrers) - {_without_scheme(e.url) for e in exchanges} | {""}
    entries = [e for e in exchanges if e.method == "GET" and _referrer(e) in outside]
    starts = [e for e in entries if _is_page(e) or _target(e)]
    if not starts or not any(_is_page(e) for e in exchanges):
        raise EyelevelError(f"{source} holds no HTML page to start from")
    start = max(starts, key=lambda e: (referrers[_without_scheme(e.url)], _is_page(e), len(e.response.body)))
    redirects: dict[str | None, list[Exchange]] = defaultdict(list)
    for entry in entries:
        redirects[_target(entry)].append(entry)
    seen = {start.url}
    while origin := next((e for e in redirects[start.url] if e.url not in seen), None):
        seen.add(origin.url)
        start = origin
    return start


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
    return exchange.response.status == 200 and exchange.response.is_html


def _target(exchange: Exchange) -> str | None:
    location = exchange.response.header("location")
    return joined(exchange.url, location) if location and exchange.response.status // 100 == 3 else None
