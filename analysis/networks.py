"""Networks in words, from their settings as `campaign.json` keeps them."""

from collections.abc import Mapping
from typing import Any

# The keys of the paper's networks, and the values that others have unless they say so.
PAPER = ("name", "min_rtt_ms", "up_mbps", "down_mbps", "queue_ms", "loss", "quiet_ms")
USUAL = {"jitter_ms": 0, "reorder": False, "loss_on": "both"}


def further(network: Mapping[str, Any]) -> list[str]:
    """The properties of a network that those of the paper do not have, each in a few words."""
    if all(key in PAPER or value in (None, USUAL.get(key)) for key, value in network.items()):
        return []
    # All impairments, for a report of networks that have some.
    from tuning.networks import words

    return list(words(network))


def path_rtt_ms(network: Mapping[str, Any]) -> float | None:
    """The least round-trip time between browser and servers, of both halves where there is a hop; None if unknown."""
    near_ms, hop = network.get("min_rtt_ms"), network.get("hop")
    return near_ms + hop["min_rtt_ms"] if near_ms is not None and hop else near_ms
