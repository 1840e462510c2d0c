"""Directions that are on and off in turn."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tuning.impairments.contract import UP, Impairment, Path, Settings, units_of

# Shorter times would only keep the emulator busy.
LEAST_ON_OFF_S = 1e-4
# Each key → its direction, as its description and the options of the shells name it; empty for both directions.
KEYS = {"on_off": "", "up_on_off": "up", "down_on_off": "down"}
UNITS = {"on_s": "on", "off_s": "off", "periodic": "periodic"}


@dataclass(frozen=True)
class OnOff:
    """How long a direction is on and off in turn, beginning on; packets that arrive while it is off are lost.

    The times are drawn from exponential distributions with these means, or are always the same if `periodic`.
    """

    on_s: float
    off_s: float
    periodic: bool = False

    @property
    def period_s(self) -> float:
        """The mean time from one start of "on" to the next."""
        return self.on_s + self.off_s

    def check(self, where: str) -> None:
        """Raise ValueError, which begins with `where`, when a time is too short."""
        if min(self.on_s, self.off_s) < LEAST_ON_OFF_S:
            raise ValueError(f"{where}: on_s and off_s must be at least {LEAST_ON_OFF_S:g}")


@dataclass(frozen=True, kw_only=True)
class OnOffs(Path):
    """`on_off` applies to both directions, which are off at the same times; `up_on_off` and `down_on_off` to one."""

    on_off: OnOff | None = None
    up_on_off: OnOff | None = None
    down_on_off: OnOff | None = None

    def on_off_of(self, direction: str) -> OnOff | None:
        """The on and off times of one direction; None if it is always on."""
        return self.on_off or (self.up_on_off if direction == UP else self.down_on_off)


def on_off_words(times: Mapping[str, float] | None, where: str) -> Iterator[str]:
    """The on and off `times` of a path in words, with `where` appended; nothing if there are none."""
    if times:
        how = "always" if times.get("periodic") else "on average"
        yield f"off{where and f' {where}'} for {times['off_s']:g} s after {times['on_s']:g} s, {how}"


def _check(network: OnOffs) -> None:
    if network.on_off and (network.up_on_off or network.down_on_off):
        raise ValueError("give on_off for both directions, or up_on_off and down_on_off")
    for key in KEYS:
        if times := getattr(network, key):
            times.check(key)


def _words(settings: Settings) -> Iterator[str]:
    for key, where in KEYS.items():
        yield from on_off_words(settings.get(key), where)


def _arguments(network: OnOffs) -> Iterator[str]:
    for key, where in KEYS.items():
        if times := getattr(network, key):
            option = f"--{'intermittent' if times.periodic else 'on-off'}{where and f'-{where}'}"
            yield from (option, f"{times.on_s:.9f},{times.off_s:.9f}")


IMPAIRMENT = Impairment(
    "on_off",
    OnOffs,
    place=7,
    units=units_of(KEYS, UNITS),
    check=_check,
    words=_words,
    arguments=_arguments,
    mahimahi=dict.fromkeys(KEYS, "place for links that are on and off"),
)
