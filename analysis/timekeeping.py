"""What a reader must know of a campaign without real-time priority for its network (`measure.host.timekeeping`)."""

from dataset.table import CampaignDocument
from tuning.defaults import DEFAULT_SHELLS


def warnings(document: CampaignDocument) -> list[str]:
    """How far times may be from those with real-time priority; nothing where the network had it.

    The numbers are those of benchmarks/rootless/README.md.
    """
    if document.settings.shells != DEFAULT_SHELLS:
        version = document.versions.get(document.settings.shells, document.settings.shells)
        return [
            f"Networks were emulated by the shells of {version}, not by ours: in whole milliseconds, without real-time "
            "priority, and a link sends whole packets at the times of a trace (docs/mahimahi.md). "
            "Whether they were late is not known. Compare these runs with each other."
        ]
    if document.has_real_time_priority:
        return []
    return [
        "The emulated network had no real-time priority. On another machine (two cores, 30 loads of demo-news behind "
        "lte each) that changed page load times by +0.5 % over tcp+ and -0.4 % over quic, and the Speed Index by "
        "-0.1 % and +3.5 % (90 % intervals: up to 3 % either way, and 0.7 to 6.4 % for the last). Compare these runs "
        "with each other, and trust no difference as small as that. `setup/grant priority` grants it."
    ]
