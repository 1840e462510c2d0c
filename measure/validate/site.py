"""The sites for validating protocols: objects on one main server, whose transfers show how a sender sends."""

import base64
import random
from pathlib import Path

import jinja2

from dataset.observations import BACKGROUND, PICTURES, URGENT
from record.generated import generated_exchange
from record.site import Exchange, Recording, Site, write_site

HOST = "validate.example"
# Other servers, with tiny responses, so that several handshakes are observed.
OTHER_HOSTS = tuple(f"other{n}.{HOST}" for n in range(3))
SERVERS = 1 + len(OTHER_HOSTS)
# The pictures are requested at once from the first of these servers, with a low priority. They are more than Chromium
# sends at once to a server that it does not know to support priorities, and fewer than the packets that the kernel
# sends at once for the browser.
PICTURE_BYTES = 5_000
PICTURE_PATHS = tuple(f"/picture-{number}" for number in range(1, PICTURES + 1))
# The size of an object: larger than any initial window, and enough for the window to grow far beyond it.
OBJECT_BYTES = 400_000
# The size for the lossy network: enough for its rate to show how losses are answered.
BULK_BYTES = 2_000_000
# The size for the network with one loss: enough for the window to grow back for 5 s at 10 Mbit/s.
LOSS_BYTES = 8_400_000
# The pause between two transfers: longer than a retransmission timeout, after which a window is outdated (RFC 9293
# section 3.8.1, RFC 5681 section 4.1), but shorter than the quiet time of the load.
PAUSE_MS = 1500

WINDOW_PAGE = "/window"
BULK_PAGE = "/bulk"
LOSS_PAGE = "/loss"
ORDER_PAGE = "/order"

# The objects that the page for the order of service requests, path → content type: first the less urgent, and soon
# afterwards, when nearly all of these still wait, the more urgent. The page determines how each object is used, and so
# its priority. At most six, including the background, have a low priority, since Chromium requests no more of these at
# once from a server that it does not know.
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
# Each is large enough for many turns; together they are so large that the bytes sent before all were requested hardly
# matter.
ORDERED_BYTES = 100_000
# After these objects, the page requests a style sheet for print (the background); in the middle of its transfer, long
# after all others arrived, it requests one for the screen (the urgent one). Only the prefetched object may come after
# the style sheet for print, since both have the same urgency.
URGENT_AFTER_MS = 300
URGENT_BYTES = 2_000

PAGE = jinja2.Template(Path(__file__).with_name("page.html.j2").read_text(), trim_blocks=True)


def write_validation_sites(folder: Path) -> dict[str, Site]:
    """Write a site for each page into `folder`; returns the page's path → its site."""
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
    # A style sheet delays the load event, and is read to its end, whatever its content.
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
    """About `size` incompressible bytes, as a comment for a style sheet or a script."""
    return b"/*" + noise.randbytes(size).replace(b"*", b"+") + b"*/"


def _picture(body: bytes) -> bytes:
    """A picture of about as many bytes as `body`."""
    text = base64.b64encode(body)[: len(body)]
    return b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><!--' + text + b"--></svg>"


def _exchange(path: str, content_type: str, body: bytes, host: str = HOST, ip: str = "192.0.2.1") -> Exchange:
    return generated_exchange(f"https://{host}{path}", content_type, body, ip)
