"""Pages that download single files: each requests one file from each of several servers, one after another, and reports
to the last server how long each took.

A page's name contains the size of its files; the same name always gives the same bytes.
"""

import random
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from record.generated import GeneratedSite, generated_exchange
from record.site import Recording

HOST = "downloads.example"
RECORDER = {"name": "eyelevel downloads", "version": "2"}
NAME = re.compile(r"downloads-([1-9]\d*)")
# The number of downloads of one load of the page.
DOWNLOADS = 8
REPORT_PATH = "/report"

PAGE = Path(__file__).with_name("page.html")


def page_name(size_bytes: int) -> str:
    """The name of the site whose files have `size_bytes`."""
    return f"downloads-{size_bytes}"


def page_named(name: str) -> int | None:
    """The size in bytes of the files of the page with the site name `name`; None if `name` is not that of such a
    page."""
    match = NAME.fullmatch(name)
    return int(match[1]) if match else None


def site(name: str) -> GeneratedSite | None:
    """The site with this name; None if the name is not that of such a page."""
    size_bytes = page_named(name)
    return GeneratedSite(RECORDER, lambda: generate(size_bytes)) if size_bytes else None


def generate(size_bytes: int) -> Recording:
    """The recording of the page whose files have `size_bytes`."""
    import jinja2

    page = jinja2.Template(PAGE.read_text()).render(servers=DOWNLOADS, host=HOST, report=REPORT_PATH).encode()
    # Noise, which no compression on the way can shrink.
    file = random.Random(size_bytes).randbytes(size_bytes)
    open_to_all = (("Access-Control-Allow-Origin", "*"), ("Timing-Allow-Origin", "*"))
    exchanges = [generated_exchange(f"https://{HOST}/", "text/html", page, "192.0.2.100")]
    exchanges.append(generated_exchange(f"https://{HOST}{REPORT_PATH}", "text/plain", b"", "192.0.2.100"))
    exchanges += [
        generated_exchange(
            f"https://server{n}.{HOST}/file", "application/octet-stream", file, f"192.0.2.{n}", open_to_all
        )
        for n in range(DOWNLOADS)
    ]
    return Recording(f"https://{HOST}/", tuple(exchanges), RECORDER)


def reported_ms(url: str) -> list[float]:
    """The times (ms) that the page reports by requesting `url`; empty if `url` is another request."""
    parts = urlsplit(url)
    if parts.path != REPORT_PATH:
        return []
    return [float(ms) for ms in parse_qs(parts.query).get("ms", [""])[0].split()]
