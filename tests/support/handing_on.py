"""Whether a site that is written in another format and imported again is the same."""

from dataclasses import replace
from pathlib import Path

from record.content import UndecodableContent, decode
from record.formats import WritableFormat, har, read_recording, wacz
from record.site import Exchange, Site, write_site


def lost_by_handing_on(site: Site, form: WritableFormat, folder: Path) -> list[str]:
    """What is no longer the same when `site` has been written in another format and imported again.

    Mahimahi holds no times, HAR no content-encodings, WACZ no waits, and only addresses that are some.
    """
    there = folder / f"handed-on{''.join(form.ENDINGS[:1])}"
    form.write(site, there)
    back = write_site(read_recording(there), folder / "back")
    lost = [f"it left out {reason}" for reason in back.skipped]
    names = ("url", "user_agent", "servers", "addresses", *(() if form is wacz else ("recorded_ips",)))
    for what in names:
        if getattr(back, what) != getattr(site, what):
            lost.append(f"{what}: {getattr(site, what)}, now {getattr(back, what)}")
    for before, after in zip(site.exchanges, back.exchanges, strict=True):
        old, new = site.recorded(before), back.recorded(after)
        if form is har:
            old, new = without_encoding(old), without_encoding(new)
            # Of a recording without times a HAR knows but the order.
            new = replace(new, started_ms=new.started_ms if old.started_ms is not None else None)
        elif form is wacz:
            old = replace(old, ttfb_ms=None, recorded_ip=new.recorded_ip)
            new = replace(new, started_ms=new.started_ms if old.started_ms is not None else None)
        else:
            old = replace(old, started_ms=None, ttfb_ms=None)
        if old != new:
            lost.append(f"{old.method} {old.url}: {old}, now {new}"[:2000])
    return lost


def without_encoding(exchange: Exchange) -> Exchange:
    """With its body decoded, and without the length that tells how it was encoded."""
    response = exchange.response
    headers = tuple(header for header in response.headers if header[0].lower() != "content-length")
    try:
        body = decode(response.body, response.header("content-encoding") or "")
    except UndecodableContent:
        body = response.body
    return replace(exchange, response=response._replace(headers=headers, body=body))
