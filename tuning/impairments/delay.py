"""The delay of a network's directions, and its variation."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuning.impairments.contract import DOWN, UP, Impairment, Path, Settings


@dataclass(frozen=True, kw_only=True)
class Delay(Path):
    """Each direction has half of the round-trip time, or the uplink has `up_delay_ms` and the downlink the rest.

    The delay of each packet varies by up to `jitter_ms` either way. With `reorder`, packets may overtake each other
    because of this.
    """

    up_delay_ms: float | None = None
    jitter_ms: float = 0
    reorder: bool = False

    @property
    def delay_ms(self) -> float:
        """Propagation delay of each direction, if both are the same."""
        return self.min_rtt_ms / 2

    def delay_of(self, direction: str) -> float:
        """Propagation delay of one direction, in ms."""
        up_ms = self.delay_ms if self.up_delay_ms is None else self.up_delay_ms
        return up_ms if direction == UP else self.min_rtt_ms - up_ms


def _check(network: Delay) -> None:
    if network.min_rtt_ms < 0:
        raise ValueError("min_rtt_ms must not be negative")
    if not 0 <= network.jitter_ms <= network.min_rtt_ms / 2:
        raise ValueError("jitter_ms must be at least 0 and at most half of min_rtt_ms")
    if network.up_delay_ms is not None and not 0 <= network.up_delay_ms <= network.min_rtt_ms:
        raise ValueError("up_delay_ms must be at least 0 and at most min_rtt_ms: it is the uplink's share of that")
    if network.up_delay_ms is not None and network.jitter_ms > min(map(network.delay_of, (UP, DOWN))):
        raise ValueError("jitter_ms must be at most the delay of each direction")


def _words(settings: Settings) -> Iterator[str]:
    yield from _share(settings)
    if settings.get("jitter_ms"):
        yield f"jitter {settings['jitter_ms']:g} ms" + (" with reordering" if settings.get("reorder") else "")


def _label(settings: Settings) -> Iterator[str]:
    jitter = f" ± {settings['jitter_ms']:g} ms" if settings.get("jitter_ms") else ""
    yield f"{settings['min_rtt_ms']:g} ms{jitter}" + (", reordering" if jitter and settings.get("reorder") else "")
    yield from _share(settings)


def _share(settings: Settings) -> Iterator[str]:
    if settings.get("up_delay_ms") is not None:
        yield f"{settings['up_delay_ms']:g} ms of the round trip up"


def _arguments(network: Delay) -> Iterator[str]:
    if network.up_delay_ms is None:
        yield from ("--delay", f"{network.delay_ms:g}")
    else:
        yield from ("--delay-up", f"{network.delay_of(UP):.6f}", "--delay-down", f"{network.delay_of(DOWN):.6f}")
    if network.jitter_ms:
        yield from ("--jitter", f"{network.jitter_ms:g}", *(["--reorder"] if network.reorder else []))


IMPAIRMENT = Impairment(
    "delay",
    Delay,
    place=2,
    units={"min_rtt_ms": "ms", "up_delay_ms": "ms-up", "jitter_ms": "jitter", "reorder": "reorder"},
    check=_check,
    words=_words,
    label=_label,
    arguments=_arguments,
    mahimahi={"jitter_ms": "jitter", "up_delay_ms": "delays that differ by direction"},
)
