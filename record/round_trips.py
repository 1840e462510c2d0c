"""How far a site's servers were when it was recorded, and how far beyond the access network a replay puts them."""

import statistics

from base.errors import EyelevelError
from record.connections import RecordedRtt, recorded_rtts
from record.site import Site


def rtts_of(site: Site) -> dict[str, RecordedRtt]:
    """Server address → its round-trip time, for the servers of `site` that have a recorded one."""
    rtts = recorded_rtts(site.connections)
    return {address: rtts[address] for address in site.servers if address in rtts}


def extra_rtts_ms(site: Site, access_ms: float | None = None) -> dict[str, float]:
    """Server address → by how much the round trip to it exceeded that to the end of the recorder's access network.

    `access_ms` is the round-trip time of that access. By default it is that of the nearest server, which is an upper
    bound. A server that was nearer gets 0; a server without a recorded time gets the median of the others. Raises
    EyelevelError when no server has one.
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
