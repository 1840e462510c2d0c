"""Networks with added round-trip delays."""

from collections.abc import Iterable
from dataclasses import replace

from base.errors import Misuse
from tuning.networks import Network


def delays_in_ms(text: str) -> list[float]:
    """The delays in a list like `0,10,20,50`. Raises EyelevelError."""
    try:
        delays = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        delays = []
    if not delays or not all(0 <= ms < float("inf") for ms in delays):
        raise Misuse(f"delays are numbers of ms, as in 0,10,20,50, not {text!r}")
    return list(dict.fromkeys(delays))


def with_added_rtt(network: Network, delays_ms: Iterable[float]) -> dict[str, Network]:
    """`network` with each of `delays_ms` added to its round trip, by name: lte, lte+10ms, …"""
    grown = (
        replace(network, name=f"{network.name}+{ms:g}ms" if ms else network.name, min_rtt_ms=network.min_rtt_ms + ms)
        for ms in delays_ms
    )
    return {one.name: one for one in grown}
