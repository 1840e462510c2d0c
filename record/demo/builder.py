"""Builds a demo site from its folder in `templates/`.

`site.toml` has the site's hosts, the values that its templates use, and the names of its parts. A part is a template of
TOML: it lists resources in the order in which a browser requests them. Parts are rendered one after the other, since
all draw their texts from the same writer. A resource has these keys:

    url             its address
    method          GET unless given
    headers         header fields of its response in addition to the usual ones
    template        the file from which its text is rendered, with `values` that only this resource has
    json            or its data
    photograph, …   or the arguments of the function that makes it, one of `_makers`
    redirect        or the address to which the response redirects

A response with none of the last four keys has no content: it answers a beacon or a preflight.
"""

import json
import tomllib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import jinja2

from record.content import encode
from record.demo.fonts import woff2
from record.demo.pictures import Painter, icon, logo, pixel
from record.demo.scripts import library
from record.demo.text import Writer, slug
from record.http1 import Response
from record.site import Exchange, Recording

TEMPLATES = Path(__file__).with_name("templates")
VISITED = datetime(2019, 10, 8, 7, 30, tzinfo=UTC)

# Content types by the ending of a path; a path without an ending is a page.
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
    """A host name, the recorded address of its server, and properties of its responses."""

    name: str
    ip: str
    software: str = "nginx/1.16.1"
    encoding: str = "gzip"
    """The content-encoding of the host's text: gzip, br, or none if empty."""
    days: int = 30
    """How many days the host's files may be cached; pages and data may not be cached."""
    is_cdn: bool = False
    """Whether the server is a cache in front of another one: then it sends the age of a file, and lets other sites read
    files and timings."""
    cookie: str = ""
    """The cookie that the host's pages and data set, `name=value`."""

    def headers(self, url: str, size: int, encoding: str) -> list[tuple[str, str]]:
        """The header fields for a file of `size` bytes at `url`."""
        is_page = ending(url) in PAGES
        modified = VISITED - timedelta(minutes=60 + zlib.crc32(url.encode()) % 200_000)
        headers = [("Content-Type", CONTENT_TYPES[ending(url)])]
        if is_page:
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
        elif is_page:
            headers += [("X-Content-Type-Options", "nosniff"), ("Strict-Transport-Security", "max-age=31536000")]
        if self.cookie and is_page:
            headers.append(("Set-Cookie", f"{self.cookie}; Max-Age=31536000; Path=/; Secure; SameSite=None"))
        return headers


class SiteBuilder:
    """Builds the site `name`. Its texts and pictures depend only on `name` and `seed`.

    `write_items` returns further values for its templates, besides those of `site.toml`.
    """

    def __init__(self, name: str, seed: int, write_items: Callable[[Writer], dict[str, Any]] | None = None) -> None:
        self._recorder = {"tool": "record.demo", "site": name, "seed": str(seed)}
        writer, coder = Writer(f"{seed} {name}"), Writer(f"{seed} {name} scripts")
        painter = Painter([seed, zlib.crc32(name.encode())])
        self._makers: dict[str, Callable[..., bytes]] = {
            "photograph": painter.photograph,
            "banner": painter.banner,
            "map_tile": painter.map_tile,
            "texture": painter.texture,
            "logo": logo,
            "icon": icon,
            "pixel": pixel,
            "font": woff2,
        }
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=jinja2.select_autoescape(("html", "svg")),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["json"] = to_json
        self._templates.globals.update(writer=writer, slug=slug, library=partial(library, self._templates, coder))
        description = _table(f"{name.removeprefix('demo-')}/site.toml")
        self._values = {"name": name, **description, **(write_items(writer) if write_items else {})}
        hosts = _table("services/site.toml")["hosts"] + description["hosts"]
        self._hosts = {host["name"]: Host(**host) for host in hosts}

    def recording(self) -> Recording:
        """The finished site; its page is its first resource."""
        exchanges = tuple(
            self._exchange(**resource)
            for part in self._values["parts"]
            for resource in tomllib.loads(self._render(part))["resources"]
        )
        return Recording(exchanges[0].url, exchanges, self._recorder, viewport=(1366, 768))

    def _exchange(
        self,
        url: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        redirect: str = "",
        **content: Any,
    ) -> Exchange:
        host = self._hosts[urlsplit(url).netloc]
        body = b""
        if redirect:
            status, fields = 302, [("Location", redirect), ("Cache-Control", "public, max-age=300")]
        elif content:
            plain = self._body(**content)
            encoding = host.encoding if ending(url) in COMPRESSED else ""
            status, fields, body = 200, host.headers(url, len(plain), encoding), encode(plain, encoding)
        else:
            status, fields = 204, [("Cache-Control", "no-store")]
        fields = [("Server", host.software), ("Date", http_date(VISITED)), *fields, *(headers or {}).items()]
        if status != 204:
            fields.append(("Content-Length", str(len(body))))
        response = Response(status, HTTPStatus(status).phrase, tuple(fields), body)
        return Exchange(method, url, response, host.ip)

    def _body(self, values: Mapping[str, Any] | None = None, **content: Any) -> bytes:
        ((kind, value),) = content.items()
        if kind == "template":
            return self._render(value, **(values or {})).encode()
        return to_json(value).encode() if kind == "json" else self._makers[kind](**value)

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(self._values, **values)


def _table(template: str) -> dict[str, Any]:
    return tomllib.loads((TEMPLATES / template).read_text(encoding="utf-8"))


def to_json(value: object) -> str:
    """`value` as JSON; for a text, this is also valid TOML."""
    return json.dumps(value, ensure_ascii=False)


def ending(url: str) -> str:
    """The ending of the path of `url`, with its dot."""
    return PurePosixPath(urlsplit(url).path).suffix


def http_date(moment: datetime) -> str:
    """A date in the format of HTTP headers (RFC 9110 section 5.6.7)."""
    return format_datetime(moment, usegmt=True)
