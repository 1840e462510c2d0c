"""What a reader must know of a campaign whose servers are not all equally far, or take their time to answer."""

import statistics

from analysis.text import plural
from dataset.table import CampaignDocument
from tuning.defaults import RECORDED


def warnings(document: CampaignDocument) -> list[str]:
    """How far beyond the networks the servers are, and whether they think; nothing where all answer at once."""
    texts = []
    if sites := document.settings.extra_rtts_ms:
        extra_ms = [ms for servers in sites.values() for ms in servers.values()]
        how = {"file": "as a file says", "recorded": "as recorded, beyond the nearest one"}.get(
            document.settings.server_rtts, f"as recorded ({document.settings.server_rtts})"
        )
        texts.append(
            f"Servers are farther away than the networks say, {how}: round trips to {plural('server', len(extra_ms))} "
            f"of {plural('site', len(sites))} are longer by {min(extra_ms):.3g} to {max(extra_ms):.3g} ms (median "
            f"{statistics.median(extra_ms):.3g} ms). Compare this campaign with none in which all are equally far."
        )
    if document.settings.think_time == RECORDED:
        texts.append(
            "Servers took as long to answer as the recorded ones took. Compare this campaign with none in which they "
            "answer at once."
        )
    if document.settings.certificates == RECORDED:
        texts.append(
            "Servers sent chains of certificates as long as the recorded ones. Compare this campaign with none in "
            "which they are short."
        )
    if document.settings.alpn == RECORDED:
        texts.append(
            "Servers of which only HTTP/1.1 was recorded spoke HTTP/1.1 over TCP, and HTTP/3 over QUIC: there the "
            "protocols differ in more than the transport."
        )
    return texts
