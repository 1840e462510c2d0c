"""A hop in the middle of a network, and the half beyond it (`tuning.hops`)."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuning.hops import NONE, Hop
from tuning.impairments.contract import Impairment, Settings, units_of
from tuning.impairments.cross_traffic import CrossTraffic


@dataclass(frozen=True, kw_only=True)
class Hopped(CrossTraffic):
    """With a `hop`, a network has two halves. The hop describes the far half; all other keys except `quiet_ms` apply
    only to the near half, from the browser to the hop."""

    hop: Hop | None = None


def _check(network: Hopped) -> None:
    if network.hop and network.has_cross_traffic:
        raise ValueError("hop and cross_traffic exclude each other: background flows have no way through a hop")


def _words(settings: Settings) -> Iterator[str]:
    """A hop and its far half: `hop (split, cubic, initial window 10), then 30 ms`."""
    if not (hop := settings.get("hop")):
        return
    sender = f", {hop['congestion_control']}, initial window {hop['initial_window_packets']}"
    text = f"hop ({hop['kind']}{sender if hop['kind'] != NONE else ''}), then {hop['min_rtt_ms']:g} ms"
    if hop.get("down_mbps") is not None:
        text += f", {hop['up_mbps']:g} up and {hop['down_mbps']:g} Mbit/s down"
    text += f", jitter {hop['jitter_ms']:g} ms" if hop.get("jitter_ms") else ""
    yield text + (f", loss {100 * hop['loss']:g} %" if hop.get("loss") else "")


IMPAIRMENT = Impairment(
    "hop",
    Hopped,
    place=8,
    units=units_of(
        ["hop"],
        {
            **{"kind": "", "min_rtt_ms": "ms-far", "up_mbps": "mbps-up-far", "down_mbps": "mbps-far"},
            **{"queue_ms": "queue-far", "loss": "loss-far", "jitter_ms": "jitter-far", "congestion_control": ""},
            **{"initial_window_packets": "iw-hop"},
        },
    ),
    check=_check,
    words=_words,
    mahimahi={"hop": "place for a hop between two halves"},
)
