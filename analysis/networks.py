"""Networks in words, from their settings in `campaign.json`."""

from collections.abc import Mapping
from typing import Any

# The keys of the paper's networks; and the default values of other keys.
PAPER = ("name", "min_rtt_ms", "up_mbps", "down_mbps", "queue_ms", "loss", "quiet_ms")
USUAL = {"jitter_ms": 0, "reorder": False, "loss_on": "both"}


def further(network: Mapping[str, Any]) -> list[str]:
    """The properties of a network that the paper's networks do not have, each in a few words."""
    if all(key in PAPER or value in (None, USUAL.get(key)) for key, value in network.items()):
        return []
    # Imported here because it loads all impairments, which only reports of such networks need.
    from tuning.networks import words

    return list(words(network))


def path_rtt_ms(network: Mapping[str, Any]) -> float | None:
    """The least round-trip time between browser and servers; with a hop, the sum of both halves. None if unknown."""
    near_ms, hop = network.get("min_rtt_ms"), network.get("hop")
    return near_ms + hop["min_rtt_ms"] if near_ms is not None and hop else near_ms
