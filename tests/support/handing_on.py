"""Compares a site with itself after it was exported to another format and imported again.

A table in docs/contributors/formats.md lists the properties that each format keeps.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from base.places import PROJECT
from record.connections import recorded_rtts
from record.content import UndecodableContent, decode
from record.formats import WritableFormat, read_recording
from record.site import Exchange, Site, write_site

DOCUMENT = PROJECT / "docs" / "contributors" / "formats.md"


def _address(exchange: Exchange) -> str | None:
    """The address of the server; None if the recording had none and this is a substitute."""
    with suppress(ValueError):
        return str(ip_address(exchange.recorded_ip))
    return None


def _content(exchange: Exchange) -> bytes:
    """The decoded body; the encoded one if it cannot be decoded."""
    response = exchange.response
    with suppress(UndecodableContent):
        return decode(response.body, response.header("content-encoding") or "")
    return response.body


def _fields(exchange: Exchange) -> list[tuple[str, str]]:
    return [field for field in exchange.response.headers if field[0].lower() != "content-length"]


# The properties that can be kept, by their names in the document's table. None means that a site has none of it.
OF_EXCHANGES: Mapping[str, Callable[[Exchange], Any]] = {
    "method and URL, in order": lambda exchange: (exchange.method, exchange.url),
    "status and reason": lambda exchange: (exchange.response.status, exchange.response.reason),
    "header fields, but `Content-Length`": _fields,
    "content of bodies, decoded": _content,
    "bodies as they were sent, and `Content-Length`": lambda exchange: (
        exchange.response.body,
        exchange.response.header("content-length"),
    ),
    "address of the server": _address,
    "when the request began": lambda exchange: exchange.started_ms,
    "time to the first byte": lambda exchange: exchange.ttfb_ms,
}
OF_SITES: Mapping[str, Callable[[Site], Any]] = {
    "start page": lambda site: site.url,
    "which hosts each server has": lambda site: (site.servers, site.addresses),
    "name of the recording browser": lambda site: site.user_agent,
    "size of its window": lambda site: site.viewport,
    "round-trip times of servers": lambda site: recorded_rtts(site.connections) or None,
    "chains of certificates": lambda site: [one.certificates for one in site.connections] or None,
}


def kept_by(form: WritableFormat) -> dict[str, bool]:
    """The entries for `form` in the document: property → whether it is kept."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOCUMENT.read_text().splitlines()
        if re.match(r"\| .* \|$", line)
    ]
    head = next(row for row in rows if form.NAME in row)
    kept = {row[0]: row[head.index(form.NAME)] for row in rows[rows.index(head) + 1 :] if len(row) == len(head)}
    assert set(kept.values()) <= {"kept", "lost"} and set(kept) == {*OF_EXCHANGES, *OF_SITES}
    return {name: word == "kept" for name, word in kept.items()}


def handed_on(site: Site, form: WritableFormat, folder: Path) -> Site:
    """Export `site` to another format, and import it again."""
    there = folder / f"handed-on{''.join(form.ENDINGS[:1])}"
    form.write(site, there)
    return write_site(read_recording(there), folder / "back")


def survival(site: Site, back: Site) -> dict[str, list[str]]:
    """Property → its differences between `site` and `back`, in words: those of each exchange, or of the site.

    Properties that the site does not have are left out.
    """
    lost: dict[str, list[str]] = {}
    for name, value_of_site in OF_SITES.items():
        if (before := value_of_site(site)) is not None:
            after = value_of_site(back)
            lost[name] = [] if before == after else [f"{before}, now {after}"]
    for old, new in zip(map(site.recorded, site.exchanges), map(back.recorded, back.exchanges), strict=True):
        for name, value_of_exchange in OF_EXCHANGES.items():
            if (value := value_of_exchange(old)) is not None:
                of_name = lost.setdefault(name, [])
                if value != (now := value_of_exchange(new)):
                    of_name.append(f"{old.method} {old.url}: {value}, now {now}"[:2000])
    return lost


def lost_by_handing_on(site: Site, form: WritableFormat, folder: Path) -> list[str]:
    """The changes of `site`, after export and import, in those properties that `form` keeps according to the
    document."""
    back = handed_on(site, form, folder)
    kept = kept_by(form)
    lost = [f"it left out {reason}" for reason in back.skipped]
    return lost + [f"{name}: {what}" for name, texts in survival(site, back).items() if kept[name] for what in texts]
