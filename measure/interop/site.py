"""The pages of the tests. Each page fetches objects, and reports the status, length and digest of each as it arrived.

The page sends its report as a request, so the report is in the servers' request log. The objects are generated: the
same name always gives the same bytes.
"""

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jinja2

from measure.run.evidence import LoggedRequest
from record.generated import generated_exchange
from record.site import Exchange, Recording, Site, write_site

HOST = "interop.example"
REPORT_PATH = "/report"
# The number of bytes of SHA-256 that are reported: few enough that the reports of some hundred objects fit into a
# request that every server accepts.
DIGEST_BYTES = 8
OPEN_TO_ALL = (("Access-Control-Allow-Origin", "*"),)

PAGE = jinja2.Template(Path(__file__).with_name("page.html.j2").read_text(), trim_blocks=True)


@dataclass(frozen=True)
class Page:
    """A page that fetches objects of these sizes (bytes). The objects are distributed in turn over as many servers as
    `servers` says. The page fetches all objects `at_once`, or one after another."""

    name: str
    sizes_bytes: tuple[int, ...]
    servers: int = 1
    at_once: bool = False

    def objects(self) -> list[Exchange]:
        """The objects that the page fetches, in order. They are noise, so that no compression on the way makes them
        smaller."""
        noise = random.Random(self.name)
        return [
            generated_exchange(
                f"https://{self._host(number)}/object-{number}",
                "application/octet-stream",
                noise.randbytes(size),
                f"192.0.2.{1 + number % self.servers}",
                OPEN_TO_ALL,
            )
            for number, size in enumerate(self.sizes_bytes)
        ]

    def write(self, folder: Path) -> Site:
        """Write the page's site into `folder`."""
        objects = self.objects()
        html = PAGE.render(
            objects=[one.url for one in objects],
            digest_bytes=DIGEST_BYTES,
            at_once=self.at_once,
            report=REPORT_PATH,
        ).encode()
        page = generated_exchange(f"https://{HOST}/", "text/html", html, "192.0.2.1")
        report = generated_exchange(f"https://{HOST}{REPORT_PATH}", "text/plain", b"", "192.0.2.1")
        return write_site(Recording(page.url, (page, *objects, report), {"name": "eyelevel interop"}), folder)

    def fault(self, requests: Iterable[LoggedRequest]) -> str | None:
        """How many objects did not arrive as they were sent, by the last report among `requests`; None if all did."""
        reports = [report for request in requests if (report := _reported(request.url)) is not None]
        if not reports:
            return "the page made no report, so it did not come to its end"
        expected = [_account(one) for one in self.objects()]
        wrong = [
            f"{got} in place of {sent} for object {number}"
            for number, (sent, got) in enumerate(zip(expected, reports[-1], strict=False))
            if sent != got
        ]
        if wrong:
            return f"{len(wrong)} of {len(expected)} objects did not arrive as they were sent; the first: {wrong[0]}"
        if len(reports[-1]) != len(expected):
            return f"the page reported {len(reports[-1])} objects in place of {len(expected)}"
        return None

    def _host(self, number: int) -> str:
        server = number % self.servers
        return f"server{server}.{HOST}" if server else HOST


def _account(one: Exchange) -> str:
    body = one.response.body
    return f"{one.response.status},{len(body)},{hashlib.sha256(body).digest()[:DIGEST_BYTES].hex()}"


def _reported(url: str) -> list[str] | None:
    """The page's report, one entry per object, if `url` is that of a report; otherwise None."""
    parts = urlsplit(url)
    return parse_qs(parts.query).get("got", [""])[0].split() if parts.path == REPORT_PATH else None
