"""Turns recordings of plain http into https ones, since nothing is ever replayed unencrypted.

Links to recorded http hosts are rewritten wherever the browser could find them (text bodies, header fields, other
URLs), so that the page requests what was recorded. Bodies keep their content-encoding, and grow with the text. Links
that scripts make are upgraded at run time: a script that reads the page's protocol to choose a host gets `http:`, as in
the recording, and the browser then requests https (`upgrade-insecure-requests`).
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from record.content import Budget, UndecodableContent, decode, encode
from record.http1 import MalformedMessage, Response, first_value, require_sendable_fields
from record.limits import BODY_BYTES, BODY_TOO_LONG, UPGRADED_BYTES
from record.site import Exchange
from record.urls import normal_url, redirected

# Matches where a script reads a page's protocol: `document.location.protocol`, also in a string whose `=` is escaped.
# Does not match where the protocol is assigned, nor where it begins an origin, since scripts compare origins with the
# page's.
READS_PROTOCOL = re.compile(
    r"(?:(?<![\w$.)\]\\])|(?<=\\x3d)|(?<=\\u003d))(?:[\w$]+\.)*location\.protocol\b(?!\s*(?:=[^=]|\+\s*['\"]//))",
    re.IGNORECASE,
)
# A test of the scheme by the character after `http`, which is `s` or `:`.
READS_LETTER = re.compile(r"(?<![\w$.)\]\\])(?:[\w$]+\.)*URL\.charAt\(4\)")
# The ends of both patterns, in lower case; and the characters of names and dots before them.
PROTOCOL_END, LETTER_END = "location.protocol", "url.charat(4)"
CHAIN = re.compile(r"[\w$.]*")
# The texts `http:` and `:` as expressions without quotation marks, since the script may be inside a string.
PLAIN_PROTOCOL, PLAIN_LETTER = "/http:/.source", "/:/.source"
UPGRADE_AT_RUN_TIME = ("Content-Security-Policy", "upgrade-insecure-requests")

# The beginning of an http URL, with all that could belong to its host and port.
PLAIN_URL = re.compile(r"http:(\\?/\\?/)([\w.:-]++)", re.IGNORECASE)

TEXT_TYPES = re.compile(r"^(text/|application/([\w.+-]*(javascript|json|xml|mpegurl))|image/svg)", re.IGNORECASE)


def upgrade(exchanges: Iterable[Exchange], source: str = "the recording") -> tuple[list[Exchange], list[str]]:
    """The exchanges with every URL in https, and a line for each exchange that this leaves out.

    An http exchange is left out if its https form was recorded, too, or if it only redirects there: after the upgrade,
    it would redirect to itself for ever. An exchange is also left out if its longer links make it too large for
    servers. Raises EyelevelError when the texts of `source`, the recording of these exchanges, are together longer than
    UPGRADED_BYTES.
    """
    exchanges = _redirected_to_https(exchanges)
    plain_hosts = {urlsplit(e.url).netloc for e in exchanges if e.url.startswith("http:")}
    if not plain_hosts:
        return exchanges, []
    to_https = _rewriter(plain_hosts)
    budget = Budget(source, UPGRADED_BYTES, "texts, decoded, with URLs in plain http")
    already_https = {(e.method, e.url) for e in exchanges if e.url.startswith("https:")}
    upgraded, reasons = [], []
    for exchange in exchanges:
        try:
            url = normal_url(to_https(exchange.url))
            response = _upgraded_response(exchange, to_https, budget)
            _require_servable(response, exchange.method)
        except MalformedMessage as error:
            reasons.append(f"{exchange.method} {exchange.url}, with its links in https: {error}")
            continue
        if exchange.url.startswith("http:") and (exchange.method, url) in already_https:
            reasons.append(f"{exchange.method} {exchange.url}: its https form was recorded too")
        elif _redirects_to(response, url):
            reasons.append(f"{exchange.method} {exchange.url}: only redirects to its https form")
        else:
            upgraded.append(replace(exchange, url=url, response=response))
    return upgraded, reasons


def _redirected_to_https(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The exchanges, with some redirects changed: if a redirect leads to an http URL of which only the https form was
    recorded, it now leads to the https form.

    A browser that knows that a host requires https (RFC 6797) does not send http requests to it.
    """
    exchanges = list(exchanges)
    recorded = {exchange.url for exchange in exchanges}

    def redirected(field: tuple[str, str]) -> tuple[str, str]:
        name, value = field
        if name.lower() == "location" and (plain := PLAIN_URL.match(value)):
            with suppress(MalformedMessage):
                in_https = f"https:{plain[1]}{plain[2].removesuffix(':80')}{value[plain.end() :]}"
                if normal_url(in_https) in recorded and normal_url(value) not in recorded:
                    return name, in_https
        return field

    return [
        replace(e, response=e.response._replace(headers=tuple(map(redirected, e.response.headers)))) for e in exchanges
    ]


def _rewriter(hosts: Iterable[str]) -> Callable[[str], str]:
    r"""A function that turns `http://HOST`, also written `http:\/\/HOST` in scripts, into https for `hosts`.

    Port 80 is dropped together with the scheme that implied it.
    """
    names = {host.removesuffix(":80") for host in hosts}

    def in_https(match: re.Match[str]) -> str:
        name = match[2].removesuffix(":80")
        return f"https:{match[1]}{name}" if name.lower() in names else match[0]

    return lambda text: PLAIN_URL.sub(in_https, text)


def _upgraded_response(exchange: Exchange, to_https: Callable[[str], str], budget: Budget) -> Response:
    """The response with its links in https. In a plain page, scripts that make links at run time are changed, too."""
    response, is_of_plain_page = exchange.response, _is_of_plain_page(exchange)

    def change(text: str) -> str:
        return in_plain_page(to_https(text)) if is_of_plain_page else to_https(text)

    headers = tuple((name, to_https(value)) for name, value in response.headers)
    if is_of_plain_page and response.is_html:
        headers = (*headers, UPGRADE_AT_RUN_TIME)
    return response._replace(headers=headers, body=_changed_text(response, change, budget))


def _changed_text(response: Response, change: Callable[[str], str], budget: Budget) -> bytes:
    """The body after `change`. A body that is no text, or cannot be decoded, is returned unchanged."""
    if not TEXT_TYPES.match(response.header("content-type") or ""):
        return response.body
    budget.spend(len(response.body))
    try:
        # Latin-1 maps bytes one to one, whatever the charset; the rewritten part is ASCII.
        before = decode(response.body, response.encoding, budget).decode("latin-1")
    except UndecodableContent:
        return response.body
    after = change(before)
    return response.body if after == before else encode(after.encode("latin-1"), response.encoding)


def _is_of_plain_page(exchange: Exchange) -> bool:
    """Whether the exchange is a page that was recorded over plain http, or was requested by one."""
    referrer = first_value(exchange.request_headers, "referer") or ""
    return exchange.url.startswith("http:") or referrer.startswith("http:")


def in_plain_page(text: str) -> str:
    """`text`, decoded as Latin-1, with its scripts changed so that they see the protocol of a plain http page."""
    text = _substituted(READS_PROTOCOL, PROTOCOL_END, PLAIN_PROTOCOL, text)
    return _substituted(READS_LETTER, LETTER_END, PLAIN_LETTER, text)


def _substituted(pattern: re.Pattern[str], end: str, substitute: str, text: str) -> str:
    """`pattern.sub(substitute, text)`, for a pattern of a chain of names that ends with `end`.

    Using the pattern alone would try it at every character, which takes 25 times as long for the text of pages.
    """
    lower = text.lower()  # in Latin-1, lower case has the same length
    parts, done = [], 0
    while (place := lower.find(end, done)) >= 0:
        start = place
        while start > done and CHAIN.fullmatch(text, start - 1, start):
            start -= 1
        # After an escaped equals sign, \x3d or \u003d, a chain begins after the sign's digits.
        for begin in (start, start + 3, start + 5):
            if match := pattern.match(text, begin):
                parts += [text[done:begin], substitute]
                done = match.end()
                break
        chain = CHAIN.match(text, place)
        chain_end = max(done, chain.end() if chain else place)
        parts.append(text[done:chain_end])
        done = chain_end
    return "".join([*parts, text[done:]])


def _require_servable(response: Response, method: str) -> None:
    if len(response.body) > BODY_BYTES:
        raise MalformedMessage(BODY_TOO_LONG)
    require_sendable_fields(response.replayable(method).headers)


def _redirects_to(response: Response, url: str) -> bool:
    location = response.header("location")
    return response.status // 100 == 3 and location is not None and redirected(url, location) == url
