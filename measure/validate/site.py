"""The site by which protocols are looked at: one server, and objects whose transfers show how a sender sends."""

import random
from pathlib import Path

import jinja2

from record.generated import generated_exchange
from record.site import Exchange, Recording, Site, write_site

HOST = "validate.example"
# Others, which are asked for next to nothing, so that more handshakes than one are seen.
OTHER_HOSTS = tuple(f"other{n}.{HOST}" for n in range(3))
SERVERS = 1 + len(OTHER_HOSTS)
# More than any initial window, and enough to open the window far beyond.
OBJECT_BYTES = 400_000
# Under loss: enough for its rate to show how losses are answered.
BULK_BYTES = 2_000_000
# With one loss: enough for the window to grow back for 5 s afterwards at 10 Mbit/s.
LOSS_BYTES = 8_400_000
# Between two transfers: longer than a retransmission timeout, by which a window is old (RFC 9293 section 3.8.1,
# RFC 5681 section 4.1), shorter than what a browser is left to wait for more.
PAUSE_MS = 1500

WINDOW_PAGE = "/window"
BULK_PAGE = "/bulk"
LOSS_PAGE = "/loss"

PAGE = jinja2.Template(Path(__file__).with_name("page.html.j2").read_text(), trim_blocks=True)


def write_validation_sites(folder: Path) -> dict[str, Site]:
    """Write a site for each page into `folder`; returns them by the page's path."""
    pages = (WINDOW_PAGE, BULK_PAGE, LOSS_PAGE)
    return {page: write_site(_recording(page), folder / page.strip("/")) for page in pages}


def _recording(page: str) -> Recording:
    noise = random.Random(page)
    html = PAGE.render(path=page, pause_ms=PAUSE_MS, others=OTHER_HOSTS).encode()
    sizes = {
        WINDOW_PAGE: {"/a": OBJECT_BYTES, "/b": OBJECT_BYTES},
        BULK_PAGE: {"/c": BULK_BYTES},
        LOSS_PAGE: {"/c": LOSS_BYTES},
    }[page]
    exchanges = [_exchange(page, "text/html", html)]
    # A style sheet holds the load event back and is read to its end, whatever is in it.
    exchanges += [
        _exchange(path, "text/css", b"/*" + noise.randbytes(size).replace(b"*", b"+") + b"*/")
        for path, size in sizes.items()
    ]
    if page == WINDOW_PAGE:
        exchanges += [_exchange("/", "text/css", b"", host, f"192.0.2.{n}") for n, host in enumerate(OTHER_HOSTS, 2)]
    return Recording(f"https://{HOST}{page}", tuple(exchanges), {"name": "eyelevel validate"})


def _exchange(path: str, content_type: str, body: bytes, host: str = HOST, ip: str = "192.0.2.1") -> Exchange:
    return generated_exchange(f"https://{host}{path}", content_type, body, ip)
