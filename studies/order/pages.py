"""Pages for which an order of service has a known result: pictures of the same size from one server, of which one is
the largest on the screen.

A page's name describes it, such as `order-12x30KB-7`: twelve pictures of 30 kB, and the seventh is the largest paint.
"""

import re
from dataclasses import dataclass

from record.generated import GeneratedSite, generated_exchange
from record.noise_picture import noise_picture
from record.site import Recording

HOST, ADDRESS = "order.example", "192.0.2.1"
RECORDER = {"name": "eyelevel order", "version": "1"}
NAME = re.compile(r"order-(?P<count>[1-9]\d{0,2})x(?P<kilobytes>[1-9]\d{0,3})KB-(?P<largest>[1-9]\d{0,2})")
# The size of the largest picture on the screen, in pixels, and that of the others; all are in the window. Chromium
# makes the first large pictures of a page more urgent, by the sizes in its attributes; so these are small for all.
WIDTH, HEIGHT, SMALL = 600, 400, 40
LARGE = f' style="width: {WIDTH}px; height: {HEIGHT}px"'


@dataclass(frozen=True)
class Page:
    """`count` pictures of `size_bytes` each, requested in their order; number `largest`, from 1, is the largest."""

    count: int
    size_bytes: int
    largest: int


def page_named(name: str) -> Page | None:
    """The page with this name; None if there is none."""
    match = NAME.fullmatch(name)
    page = Page(int(match["count"]), 1000 * int(match["kilobytes"]), int(match["largest"])) if match else None
    return page if page and page.largest <= page.count else None


def site(name: str) -> GeneratedSite | None:
    """The site with this name; None if there is none."""
    page = page_named(name)
    return GeneratedSite(RECORDER, lambda: generate(page, name)) if page else None


def generate(page: Page, name: str) -> Recording:
    """The recording of `page`."""
    sources = [f"https://{HOST}/{number}.png" for number in range(1, page.count + 1)]
    images = "\n".join(
        f'<img src="{source}" alt="" width="{SMALL}" height="{SMALL}"{LARGE if number == page.largest else ""}>'
        for number, source in enumerate(sources, start=1)
    )
    # Without an icon in the page, the browser would request one.
    head = f'<!doctype html><title>{name}</title><link rel="icon" href="data:,">'
    # Pictures are white, and are to be seen in the film.
    html = f'{head}<body style="background: silver">\n{images}\n'.encode()
    pictures = [
        generated_exchange(
            source, "image/png", noise_picture(page.size_bytes, f"{name}/{source}", WIDTH, HEIGHT), ADDRESS
        )
        for source in sources
    ]
    document = generated_exchange(f"https://{HOST}/", "text/html", html, ADDRESS)
    return Recording(f"https://{HOST}/", (document, *pictures), RECORDER)


def ahead_bytes(page: Page, turn_bytes: int | None) -> int:
    """The bytes of other pictures that a server sends before the end of the largest, if it has all requests: with
    `turn_bytes`, pictures take turns of so many; without, they are sent one after another."""
    if turn_bytes is None:
        return (page.largest - 1) * page.size_bytes
    whole_turns = (page.size_bytes - 1) // turn_bytes
    rest_bytes = page.size_bytes - whole_turns * turn_bytes
    return (page.count - 1) * whole_turns * turn_bytes + (page.largest - 1) * rest_bytes
