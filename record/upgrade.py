"""Turning plain-http recordings into https ones: nothing is ever replayed unencrypted.

Links to recorded http hosts are rewritten wherever the browser could find them (text bodies, header
fields, other URLs), so that the page asks for what was recorded. Lengths grow by what the rewriting
adds; bodies keep their content-encoding.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from record.content import UndecodableContent, decode, encode
from record.http1 import Response
from record.site import Exchange

TEXT_TYPES = re.compile(r"^(text/|application/([\w.+-]*(javascript|json|xml|mpegurl))|image/svg)", re.IGNORECASE)


def upgrade(exchanges: Iterable[Exchange]) -> tuple[list[Exchange], list[str]]:
    """The exchanges with every URL in https, and a line for each one that this leaves out.

    An http exchange goes when the recording has the https form too, or when it only redirected there:
    upgraded, it would redirect to itself for ever.
    """
    exchanges = list(exchanges)
    plain_hosts = {urlsplit(e.url).netloc for e in exchanges if e.url.startswith("http:")}
    if not plain_hosts:
        return exchanges, []
    to_https = _rewriter(plain_hosts)
    already_https = {(e.method, e.url) for e in exchanges if e.url.startswith("https:")}
    kept, left_out = [], []
    for exchange in exchanges:
        url = to_https(exchange.url)
        response = _upgraded_response(exchange.response, to_https)
        if exchange.url.startswith("http:") and (exchange.method, url) in already_https:
            left_out.append(f"{exchange.method} {exchange.url}: its https form was recorded too")
        elif _redirects_to(response, url):
            left_out.append(f"{exchange.method} {exchange.url}: only redirects to its https form")
        else:
            kept.append(replace(exchange, url=url, response=response))
    return kept, left_out


def _rewriter(hosts: Iterable[str]) -> Callable[[str], str]:
    """A function that turns `http://HOST`, also as `http:\\/\\/HOST` in scripts, into https for `hosts`.

    Port 80 is dropped with the scheme that implied it.
    """
    names = sorted({re.escape(host.removesuffix(":80")) for host in hosts}, key=len, reverse=True)
    pattern = re.compile(rf"http:(\\?/\\?/)({'|'.join(names)})(:80)?(?![\w.:-])", re.IGNORECASE)
    return lambda text: pattern.sub(r"https:\1\2", text)


def _upgraded_response(response: Response, to_https: Callable[[str], str]) -> Response:
    headers = tuple((name, to_https(value)) for name, value in response.headers)
    return replace(response, headers=headers, body=_upgraded_body(response, to_https))


def _upgraded_body(response: Response, to_https: Callable[[str], str]) -> bytes:
    """The body rewritten; one that is no text, or cannot be decoded, stays as recorded."""
    if not TEXT_TYPES.match(response.header("content-type") or ""):
        return response.body
    encoding = (response.header("content-encoding") or "").strip().lower()
    try:
        # Latin-1 maps bytes one to one, whatever the charset; the rewritten part is ASCII.
        before = decode(response.body, encoding).decode("latin-1")
    except UndecodableContent:
        return response.body
    after = to_https(before)
    return response.body if after == before else encode(after.encode("latin-1"), encoding)


def _redirects_to(response: Response, url: str) -> bool:
    location = response.header("location")
    return response.status // 100 == 3 and location is not None and urljoin(url, location) == url
