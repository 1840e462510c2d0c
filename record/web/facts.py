"""Counts in a recording the numbers whose percentiles are published (`marginals.toml`).

Only what is in the recording counts: responses and their header fields, and the page's HTML. Requests are all
exchanges. The kind of a response is that of its content type. Sizes are those of bodies as they are transferred, in KB
of 1024 bytes; HTTP Archive counts header fields, too. A third party is another registrable domain than the page's.
"""

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from record.connections import HTTP1, recorded_rtts
from record.content import decode
from record.site import Exchange, Recording

Facts = dict[str, Any]
KINDS = {
    "text/html": "html",
    "text/css": "css",
    "text/javascript": "js",
    "image/": "image",
    "font/": "font",
}
KB = 1024
WORK = re.compile(r"var work=(\d+),")
PROMO = re.compile(r'p\.style\.height="(\d+)px"')
# The part of a task that does not count as blocking.
TASK_MS = 50
# The parts of a script that insert other scripts, with the URLs.
INSERTED = re.compile(r'\[([^\[\]]*)\]\.forEach\(function\(u\)\{var s=document\.createElement\("script"\)')


class _Page(HTMLParser):
    """The elements of documents: tag and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.before_body: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not any(name == "body" for name, _ in self.elements):
            self.before_body.append({name: value or "" for name, value in attrs})
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def having(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of the elements with this tag, and with these values of some."""
        wanted = attributes.items()
        return [match for name, match in self.elements if name == tag and wanted <= match.items()]


def facts(recording: Recording) -> Facts:
    """The numbers of one page: those of the page itself, and lists of those of its files and servers."""
    kinds: dict[str, list[Exchange]] = {kind: [] for kind in KINDS.values()}
    for exchange in recording.exchanges:
        if kind := _kind(exchange):
            kinds[kind].append(exchange)
    page = _page(recording)
    site, viewport = _domain(recording.url), recording.viewport or (1366, 768)
    third = [one for one in recording.exchanges if _domain(one.url) != site]
    scripts = [_text(one) for one in kinds["js"]]
    inserted = sum(match.count('"') // 2 for text in scripts for match in INSERTED.findall(text))
    tags = [one for one in page.having("script") if "src" in one]
    rtts = recorded_rtts(recording.connections)
    hero = page.having("img", **{"class": "hero"})
    stage = page.having("div", **{"class": "stage"})
    background = _background(recording, kinds["css"]) if stage and not hero else ""
    preloads = page.having("link", rel="preload")
    return {
        "requests": len(recording.exchanges),
        **{f"{kind}_requests": len(some) for kind, some in kinds.items()},
        "bytes": _kilobytes(recording.exchanges),
        **{f"{kind}_bytes": _kilobytes(some) for kind, some in kinds.items()},
        "servers": len({one.recorded_ip for one in recording.exchanges}),
        "third_party_domains": len({_domain(one.url) for one in third}),
        "blocking_ms": sum(max(0, int(ms) - TASK_MS) for text in scripts for ms in WORK.findall(text)),
        "shift": round(100 * sum(int(high) for text in scripts for high in PROMO.findall(text)) / max(viewport), 1),
        "unsized_images": sum("width" not in one for one in page.having("img")),
        "cookies": sum(name.lower() == "set-cookie" for one in recording.exchanges for name, _ in one.response.headers),
        "injected": round(100 * inserted / max(1, len(kinds["js"])), 1),
        "with_third_parties": bool(third),
        "with_fonts": bool(kinds["font"]),
        "with_font_service": any(_domain(one.url) != site for one in kinds["font"]),
        "with_blocking": any("media" not in one for one in page.having("link", rel="stylesheet"))
        or any(_mode(one) == "sync" for one in tags if one in page.before_body),
        "with_lazy": bool(page.having("img", loading="lazy")),
        "with_preload": bool(preloads),
        "with_preconnect": bool(page.having("link", rel="preconnect")),
        "with_dns_prefetch": bool(page.having("link", rel="dns-prefetch")),
        "with_no_store": "no-store" in (recording.exchanges[0].response.header("cache-control") or ""),
        "lcp_text": not hero and not background,
        "lcp_background": bool(background),
        "lcp_cross_host": bool(source := hero[0]["src"] if hero else background)
        and _host(source) != _host(recording.url),
        "lcp_priority": bool(page.having("img", **{"class": "hero", "fetchpriority": "high"})),
        "lcp_lazy": bool(page.having("img", **{"class": "hero", "loading": "lazy"})),
        "lcp_preload": any(one.get("as") == "image" for one in preloads),
        "third_party_requests": len(third),
        "redirects": sum(300 <= one.response.status < 400 for one in recording.exchanges),
        "js_file_bytes": [_kilobytes([one]) for one in kinds["js"]],
        "image_file_bytes": [_kilobytes([one]) for one in kinds["image"]],
        "font_file_bytes": [_kilobytes([one]) for one in kinds["font"]],
        "chain_bytes": [sum(one.certificates) for one in recording.connections],
        "rtt_ms": [rtt.rtt_ms for rtt in rtts.values()],
        "think_ms": [_think_ms(recording.exchanges[0], rtts)],
        "http1_servers": sum(one.alpn == HTTP1 for one in recording.connections),
        "js_br": _encoded(kinds["js"], "br"),
        "js_gzip": _encoded(kinds["js"], "gzip"),
        "scripts_in_html": len(tags),
        "js_async": sum(_mode(one) == "async" for one in tags),
        "js_defer": sum(_mode(one) == "defer" for one in tags),
        **{f"image_{form}": _typed(kinds["image"], form) for form in ("jpeg", "png", "gif", "webp", "svg", "avif")},
    }


def _kind(exchange: Exchange) -> str:
    content_type = exchange.response.header("content-type") or ""
    return next((kind for beginning, kind in KINDS.items() if content_type.startswith(beginning)), "")


def _kilobytes(exchanges: Iterable[Exchange]) -> float:
    return round(sum(len(one.response.body) for one in exchanges) / KB, 2)


def _text(exchange: Exchange) -> str:
    return decode(exchange.response.body, exchange.response.header("content-encoding") or "").decode()


def _page(recording: Recording) -> _Page:
    page = _Page()
    page.feed(_text(recording.exchanges[0]))
    return page


def _background(recording: Recording, styles: Iterable[Exchange]) -> str:
    """The URL of the image behind the page's stage; empty if there is none."""
    texts = (_text(one) for one in (*styles, recording.exchanges[0]))
    return next((match[1] for text in texts if (match := re.search(r'\.stage\{[^}]*url\("([^"]+)"\)', text))), "")


def _mode(tag: Mapping[str, str]) -> str:
    if "async" in tag:
        return "async"
    return "defer" if "defer" in tag or tag.get("type") == "module" else "sync"


def _encoded(exchanges: Iterable[Exchange], encoding: str) -> int:
    return sum(one.response.header("content-encoding") == encoding for one in exchanges)


def _typed(exchanges: Iterable[Exchange], form: str) -> int:
    types = ((one.response.header("content-type") or "").partition("/")[2] for one in exchanges)
    return sum(name.partition("+")[0] == form for name in types)


def _think_ms(exchange: Exchange, rtts: Mapping[str, Any]) -> float:
    rtt = rtts.get(exchange.recorded_ip)
    return round(max(0.0, (exchange.ttfb_ms or 0.0) - (rtt.rtt_ms if rtt else 0.0)), 1)


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _domain(url: str) -> str:
    """The registrable domain of a URL; all of the set's are below `.example`."""
    return ".".join(_host(url).split(".")[-2:])
