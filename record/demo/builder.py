"""Puts a demo site together from its hosts and its resources, in the order in which a browser asks for them."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import jinja2

from record.content import encode
from record.demo.pictures import Painter
from record.demo.scripts import library
from record.demo.text import Writer, slug
from record.http1 import Headers, Response
from record.site import Exchange, Recording

TEMPLATES = Path(__file__).with_name("templates")
VISITED = datetime(2019, 10, 8, 7, 30, tzinfo=UTC)
REASONS = {200: "OK", 204: "No Content", 302: "Found"}

# By the end of the path; whatever has no ending is a page.
CONTENT_TYPES = {
    "": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "application/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
COMPRESSED = frozenset({"", ".html", ".css", ".js", ".json", ".svg"})
PAGES = frozenset({"", ".html", ".json"})


@dataclass(frozen=True)
class Host:
    """A host name, the recorded address of its server, and what it puts into its responses."""

    name: str
    ip: str
    software: str = "nginx/1.16.1"
    encoding: str = "gzip"
    """The content-encoding of its text: gzip, br, or none if empty."""
    days: int = 30
    """How long its files may be cached; pages and data are not."""
    is_cdn: bool = False
    """A cache in front of another server: it sends the age of a file, and lets other sites read files and timings."""
    cookie: str = ""
    """The cookie that its pages and data set, `name=value`."""

    def headers(self, url: str, size: int, encoding: str) -> Headers:
        """The header fields for a file of `size` bytes at `url`."""
        ending = PurePosixPath(urlsplit(url).path).suffix
        modified = VISITED - timedelta(minutes=60 + zlib.crc32(url.encode()) % 200_000)
        headers = [("Server", self.software), ("Date", http_date(VISITED)), ("Content-Type", CONTENT_TYPES[ending])]
        if ending in PAGES:
            headers.append(("Cache-Control", "private, no-cache"))
        else:
            headers += [
                ("Last-Modified", http_date(modified)),
                ("ETag", f'"{int(modified.timestamp()):x}-{size:x}"'),
                ("Cache-Control", f"public, max-age={self.days * 86_400}"),
                ("Accept-Ranges", "bytes"),
            ]
        if encoding:
            headers += [("Content-Encoding", encoding), ("Vary", "Accept-Encoding")]
        if self.is_cdn:
            headers += [
                ("Age", str(zlib.crc32(url.encode()) % 80_000)),
                ("Via", "1.1 varnish"),
                ("X-Cache", "HIT"),
                ("Access-Control-Allow-Origin", "*"),
                ("Timing-Allow-Origin", "*"),
            ]
        elif ending in PAGES:
            headers += [("X-Content-Type-Options", "nosniff"), ("Strict-Transport-Security", "max-age=31536000")]
        if self.cookie and ending in PAGES:
            headers.append(("Set-Cookie", f"{self.cookie}; Max-Age=31536000; Path=/; Secure; SameSite=None"))
        return tuple(headers)


@dataclass
class SiteBuilder:
    """Collects a site's exchanges. Every text and picture in it follows from `name` and `seed`."""

    name: str
    seed: int
    hosts: Iterable[Host]
    exchanges: list[Exchange] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._hosts = {host.name: host for host in self.hosts}
        self.writer = Writer(f"{self.seed} {self.name}")
        self.painter = Painter([self.seed, zlib.crc32(self.name.encode())])
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=jinja2.select_autoescape(("html", "svg")),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        coder = Writer(f"{self.seed} {self.name} scripts")
        self._templates.globals.update(writer=self.writer, slug=slug, library=partial(library, self._templates, coder))

    def file(self, url: str, body: bytes, extra: Headers = ()) -> None:
        """A GET answered with `body`, compressed if it is text and the host does that."""
        host = self._host(url)
        ending = PurePosixPath(urlsplit(url).path).suffix
        encoding = host.encoding if ending in COMPRESSED else ""
        headers = host.headers(url, len(body), encoding)
        self.answer("GET", url, 200, headers + extra, encode(body, encoding))

    def photographs(self, urls: Iterable[str], width: int, height: int) -> None:
        """A GET of each of `urls`, answered with a photograph of this size in pixels."""
        for url in urls:
            self.file(url, self.painter.photograph(width, height))

    def render(self, url: str, template: str, extra: Headers = (), **values: object) -> None:
        """A GET answered with a template's text."""
        self.file(url, self._templates.get_template(template).render(values).encode(), extra)

    def redirect(self, url: str, target: str) -> None:
        """A GET answered with the address of another."""
        self.answer("GET", url, 302, (("Location", target), ("Cache-Control", "public, max-age=300")))

    def nothing(self, url: str, method: str = "GET", extra: Headers = ()) -> None:
        """A request whose answer has no content: a beacon, or a preflight."""
        self.answer(method, url, 204, (("Cache-Control", "no-store"), *extra))

    def answer(self, method: str, url: str, status: int, headers: Headers, body: bytes = b"") -> None:
        """Add any exchange. It gets the fields Server and Date unless they are among `headers`."""
        host = self._host(url)
        names = {name for name, _ in headers}
        first = tuple(h for h in (("Server", host.software), ("Date", http_date(VISITED))) if h[0] not in names)
        length = () if status == 204 else (("Content-Length", str(len(body))),)
        response = Response(status, REASONS[status], first + headers + length, body)
        self.exchanges.append(Exchange(method, url, response, host.ip))

    def recording(self) -> Recording:
        """The finished site; it starts at what was added first."""
        return Recording(
            url=self.exchanges[0].url,
            exchanges=tuple(self.exchanges),
            recorder={"tool": "record.demo", "site": self.name, "seed": str(self.seed)},
            viewport=(1366, 768),
        )

    def _host(self, url: str) -> Host:
        return self._hosts[urlsplit(url).netloc]


def http_date(moment: datetime) -> str:
    """A date as HTTP headers have it (RFC 9110 section 5.6.7)."""
    return format_datetime(moment, usegmt=True)
