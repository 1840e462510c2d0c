"""Losses of packets that are chosen by number or time."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuning.impairments.contract import DOWN, UP, Impairment, Path, Settings


@dataclass(frozen=True, kw_only=True)
class Drops(Path):
    """Packets that are lost for good, whatever else happens.

    `drop_up_packets` has the numbers of packets, from 1; `drop_up_at_ms` has times since the emulator started, and the
    first packet at or after each of them is lost. The packets are IP packets as on a wire, at the client's end of the
    network.
    """

    drop_up_packets: tuple[int, ...] | None = None
    drop_down_packets: tuple[int, ...] | None = None
    drop_up_at_ms: tuple[float, ...] | None = None
    drop_down_at_ms: tuple[float, ...] | None = None

    def chosen_of(self, direction: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Numbers and times of the packets that one direction drops."""
        if direction == UP:
            return self.drop_up_packets or (), self.drop_up_at_ms or ()
        return self.drop_down_packets or (), self.drop_down_at_ms or ()

    @property
    def drops_chosen_packets(self) -> bool:
        """Whether the network loses packets that are chosen by number or time."""
        return any(any(self.chosen_of(direction)) for direction in (UP, DOWN))


def _check(network: Drops) -> None:
    for direction in (UP, DOWN):
        packets, at_ms = network.chosen_of(direction)
        if min(packets, default=1) < 1 or len(set(packets)) < len(packets):
            raise ValueError(f"drop_{direction}_packets must be whole numbers of at least 1, each once")
        if min(at_ms, default=0) < 0 or len(set(at_ms)) < len(at_ms):
            raise ValueError(f"drop_{direction}_at_ms must be times of at least 0, each once")


def _words(settings: Settings) -> Iterator[str]:
    for direction in (UP, DOWN):
        if packets := settings.get(f"drop_{direction}_packets"):
            yield f"packets {', '.join(map(str, packets))} {direction} dropped"
        if times_ms := settings.get(f"drop_{direction}_at_ms"):
            yield f"a packet {direction} dropped at {', '.join(f'{time_ms:g}' for time_ms in times_ms)} ms"


def _label(settings: Settings) -> Iterator[str]:
    if any(_words(settings)):
        yield "chosen packets dropped"


def _arguments(network: Drops) -> Iterator[str]:
    chosen = {direction: network.chosen_of(direction) for direction in (UP, DOWN)}
    for direction, (packets, _) in chosen.items():
        yield from [f"--drop-{direction}-packets", ",".join(map(str, packets))] if packets else []
    for direction, (_, times_ms) in chosen.items():
        yield from [f"--drop-{direction}-at", ",".join(f"{one:.6f}" for one in times_ms)] if times_ms else []


IMPAIRMENT = Impairment(
    "drops",
    Drops,
    place=9,
    check=_check,
    words=_words,
    label=_label,
    arguments=_arguments,
    mahimahi={
        **dict.fromkeys(("drop_up_packets", "drop_down_packets"), "losses of chosen packets"),
        **dict.fromkeys(("drop_up_at_ms", "drop_down_at_ms"), "losses at chosen times"),
    },
)
