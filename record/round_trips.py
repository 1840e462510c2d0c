"""How far the servers of a site were when it was recorded, and how far beyond an access network a replay puts them."""

import statistics

from base.errors import EyelevelError
from record.connections import RecordedRtt, recorded_rtts
from record.site import Site


def rtts_of(site: Site) -> dict[str, RecordedRtt]:
    """Server address → its round-trip time, of those servers of `site` of which one was recorded."""
    rtts = recorded_rtts(site.connections)
    return {address: rtts[address] for address in site.servers if address in rtts}


def extra_rtts_ms(site: Site, access_ms: float | None = None) -> dict[str, float]:
    """Server address → how much longer the round trip to it was than to the end of the recorder's access network.

    `access_ms` is the round-trip time of that access; that of the nearest server unless given, which is the longest
    that it can have been. A server that was nearer has 0, one of which nothing was recorded the median of the others.
    Raises EyelevelError when nothing was recorded of any.
    """
    rtts_ms = {address: rtt.rtt_ms for address, rtt in rtts_of(site).items()}
    if not rtts_ms:
        raise EyelevelError(
            f"{site.name}: no round-trip times of its servers were recorded; record it again, import an archive that "
            "has them (HAR), or give them in a file (--server-rtts, SERVER_RTTS)"
        )
    nearest_ms = min(rtts_ms.values()) if access_ms is None else access_ms
    known_ms = {address: max(0.0, rtt_ms - nearest_ms) for address, rtt_ms in rtts_ms.items()}
    usual_ms = statistics.median(known_ms.values())
    return {address: round(known_ms.get(address, usual_ms), 3) for address in site.servers}
