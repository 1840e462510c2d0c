"""The site by which protocols are looked at: one server, and objects whose transfers show how a sender sends."""

import base64
import random
from pathlib import Path

import jinja2

from dataset.observations import BACKGROUND, PICTURES, URGENT
from record.generated import generated_exchange
from record.site import Exchange, Recording, Site, write_site

HOST = "validate.example"
# Others, which are asked for next to nothing, so that more handshakes than one are seen.
OTHER_HOSTS = tuple(f"other{n}.{HOST}" for n in range(3))
SERVERS = 1 + len(OTHER_HOSTS)
# Asked for of the first of them at once, with a low priority: more than Chromium sends at once to a server of which it
# does not know that it takes priorities, and fewer than the packets that the kernel sends at once for the browser.
PICTURE_BYTES = 5_000
PICTURE_PATHS = tuple(f"/picture-{number}" for number in range(1, PICTURES + 1))
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
ORDER_PAGE = "/order"

# The objects that the page of the order of service asks for, path → content type: first the less urgent, and soon
# afterwards, when nearly all of these still wait, the more urgent. The page decides the role in which each is asked
# for, and so its priority. No more than six are of a low priority, with the background: Chromium asks a server that it
# does not know for no more of these at once.
FIRST_WAVE = {
    "/prefetch": "text/plain",
    "/image-1": "image/svg+xml",
    "/image-2": "image/svg+xml",
    "/script-1": "text/javascript",
    "/script-2": "text/javascript",
}
SECOND_WAVE = {
    "/fetch-1": "text/plain",
    "/fetch-2": "text/plain",
    "/urgent-script-1": "text/javascript",
    "/urgent-script-2": "text/javascript",
    "/style-1": "text/css",
    "/style-2": "text/css",
}
SECOND_WAVE_AFTER_MS = 50
ORDERED = FIRST_WAVE | SECOND_WAVE
# Each large enough for many turns, all together for what is sent before all of them were asked for to be little.
ORDERED_BYTES = 100_000
# A style sheet for print, asked for last; and the one for the screen that is asked for in its middle, so long after all
# others arrived. Only the prefetched one may come after the style sheet for print, as urgent as that.
URGENT_AFTER_MS = 300
URGENT_BYTES = 2_000

PAGE = jinja2.Template(Path(__file__).with_name("page.html.j2").read_text(), trim_blocks=True)


def write_validation_sites(folder: Path) -> dict[str, Site]:
    """Write a site for each page into `folder`; returns them by the page's path."""
    pages = (WINDOW_PAGE, BULK_PAGE, LOSS_PAGE, ORDER_PAGE)
    return {page: write_site(_recording(page), folder / page.strip("/")) for page in pages}


def _recording(page: str) -> Recording:
    noise = random.Random(page)
    html = PAGE.render(
        path=page,
        pause_ms=PAUSE_MS,
        others=OTHER_HOSTS,
        pictures=[f"https://{OTHER_HOSTS[0]}{path}" for path in PICTURE_PATHS],
        first_wave=list(FIRST_WAVE),
        second_wave=list(SECOND_WAVE),
        second_wave_after_ms=SECOND_WAVE_AFTER_MS,
        background=BACKGROUND,
        urgent=URGENT,
        urgent_after_ms=URGENT_AFTER_MS,
    ).encode()
    exchanges = [_exchange(page, "text/html", html)]
    # A style sheet holds the load event back and is read to its end, whatever is in it.
    sizes = {
        WINDOW_PAGE: {"/a": OBJECT_BYTES, "/b": OBJECT_BYTES},
        BULK_PAGE: {"/c": BULK_BYTES},
        LOSS_PAGE: {"/c": LOSS_BYTES},
        ORDER_PAGE: {BACKGROUND: BULK_BYTES, URGENT: URGENT_BYTES},
    }[page]
    exchanges += [_exchange(path, "text/css", _comment(noise, size)) for path, size in sizes.items()]
    if page == WINDOW_PAGE:
        exchanges += [_exchange("/", "text/css", b"", host, f"192.0.2.{n}") for n, host in enumerate(OTHER_HOSTS, 2)]
        for path in PICTURE_PATHS:
            picture = _picture(_comment(noise, PICTURE_BYTES))
            exchanges.append(_exchange(path, "image/svg+xml", picture, OTHER_HOSTS[0], "192.0.2.2"))
    if page == ORDER_PAGE:
        for path, content_type in ORDERED.items():
            body = _comment(noise, ORDERED_BYTES)
            exchanges.append(_exchange(path, content_type, _picture(body) if "image" in content_type else body))
    return Recording(f"https://{HOST}{page}", tuple(exchanges), {"name": "eyelevel validate"})


def _comment(noise: random.Random, size: int) -> bytes:
    """Some `size` bytes that cannot be compressed; a comment in a style sheet or a script."""
    return b"/*" + noise.randbytes(size).replace(b"*", b"+") + b"*/"


def _picture(body: bytes) -> bytes:
    """A picture of about as many bytes."""
    text = base64.b64encode(body)[: len(body)]
    return b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><!--' + text + b"--></svg>"


def _exchange(path: str, content_type: str, body: bytes, host: str = HOST, ip: str = "192.0.2.1") -> Exchange:
    return generated_exchange(f"https://{host}{path}", content_type, body, ip)
