"""Pages of a grid: only a number of images of the same size from a number of servers.

The page is static HTML. Its images are valid and end in noise, which no compression on the way shrinks. A page's name
describes it; the same name always gives the same bytes.
"""

import re
from dataclasses import dataclass

from base.errors import EyelevelError, Misuse
from record.generated import GeneratedSite, generated_exchange
from record.noise_picture import noise_picture
from record.site import Exchange, Recording

HOST = "grid.example"
RECORDER = {"name": "eyelevel grid", "version": "1"}
UNITS = {"B": 1, "KB": 1000}
NAME = re.compile(r"grid-(?P<count>[1-9]\d*)x(?P<size>[1-9]\d*)(?P<unit>B|KB)(?:-(?P<servers>[1-9]\d*)s)?")

# The recorded addresses are from one of the networks for documentation (RFC 5737).
MOST_SERVERS = 254


@dataclass(frozen=True)
class Page:
    """`count` images of `size_bytes` each, from `servers` servers in turn; the first server also has the page."""

    count: int
    size_bytes: int
    servers: int = 1

    @property
    def name(self) -> str:
        """The name of the site: `grid-100x10KB`, `grid-100x10KB-4s`."""
        spread = f"-{self.servers}s" if self.servers > 1 else ""
        return f"grid-{self.count}x{size_name(self.size_bytes)}{spread}"


def size_name(size_bytes: int) -> str:
    """`size_bytes` in the form of a page's name: 100B, 10KB."""
    return f"{size_bytes}B" if size_bytes % 1000 else f"{size_bytes // 1000}KB"


def read_size(text: str) -> int:
    """The number of bytes that `text` means, in the form of a page's name. Raises EyelevelError."""
    match = re.fullmatch(r"([1-9]\d*)(B|KB)", text)
    if not match:
        raise Misuse(f"a size is written like 100B or 10KB, not {text!r}")
    return int(match[1]) * UNITS[match[2]]


def page_named(name: str) -> Page | None:
    """The page with this name; None if the name is not that of a grid's page."""
    match = NAME.fullmatch(name)
    if not match:
        return None
    return Page(int(match["count"]), int(match["size"]) * UNITS[match["unit"]], int(match["servers"] or 1))


def site(name: str) -> GeneratedSite | None:
    """The site with this name; None if the name is not that of a grid's page."""
    page = page_named(name)
    return GeneratedSite(RECORDER, lambda: generate(page)) if page else None


def generate(page: Page) -> Recording:
    """The recording of `page`. Raises EyelevelError if its images are too small or its servers too many."""
    if page.servers > min(page.count, MOST_SERVERS):
        raise EyelevelError(f"{page.name}: a page has at most {MOST_SERVERS} servers, and an image from each")
    sources = [f"https://{_host(number % page.servers)}/{number}.png" for number in range(page.count)]
    images = "\n".join(f'<img src="{source}" alt="">' for source in sources)
    # Without an icon in the page, the browser would request one.
    html = f'<!doctype html><title>{page.name}</title><link rel="icon" href="data:,">\n{images}\n'.encode()
    exchanges: list[Exchange] = [generated_exchange(f"https://{HOST}/", "text/html", html, _address(0))]
    exchanges += [
        generated_exchange(
            source,
            "image/png",
            noise_picture(page.size_bytes, f"{page.name}/{number}"),
            _address(number % page.servers),
        )
        for number, source in enumerate(sources)
    ]
    return Recording(f"https://{HOST}/", tuple(exchanges), RECORDER)


def _host(server: int) -> str:
    return f"s{server}.{HOST}" if server else HOST


def _address(server: int) -> str:
    return f"192.0.2.{server + 1}"
