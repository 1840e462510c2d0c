"""Background flows that others send through a network (`tuning.cross_traffic` describes how)."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuning.impairments.contract import Impairment, Settings, units_of
from tuning.impairments.drops import Drops
from tuning.impairments.on_off import UNITS, OnOff, on_off_words

# The kinds of background flows: the kernel's TCP, named by its congestion control, or QUIC with a congestion control.
QUIC_FLOW = "quic-"
CROSS_TRAFFIC = ("cubic", "bbr", "reno", "quic-cubic")
# Each flow has its own addresses (`replay.cross_traffic`).
MOST_FLOWS = 32


@dataclass(frozen=True, kw_only=True)
class CrossTraffic(Drops):
    """`cross_traffic` are background flows to addresses next to the client's, by kind; `up_cross_traffic` are flows
    from there. They last as long as a run, or are on and off in turn (`cross_traffic_on_off`)."""

    cross_traffic: tuple[str, ...] | None = None
    up_cross_traffic: tuple[str, ...] | None = None
    cross_traffic_on_off: OnOff | None = None

    @property
    def has_cross_traffic(self) -> bool:
        """Whether background flows share the network with the page."""
        return bool(self.cross_traffic or self.up_cross_traffic)


def _check(network: CrossTraffic) -> None:
    up, down = network.up_cross_traffic or (), network.cross_traffic or ()
    for name, kinds in (("cross_traffic", down), ("up_cross_traffic", up)):
        for kind in kinds:
            if kind not in CROSS_TRAFFIC:
                raise ValueError(f"{name} has {kind!r}; background flows are {', '.join(CROSS_TRAFFIC)}")
    for kind in up:
        if kind.startswith(QUIC_FLOW):
            raise ValueError(f"up_cross_traffic has {kind!r}; background flows over QUIC are sent to the client only")
    if len(down) + len(up) > MOST_FLOWS:
        raise ValueError(f"cross_traffic and up_cross_traffic must be at most {MOST_FLOWS} flows together")
    if times := network.cross_traffic_on_off:
        times.check("cross_traffic_on_off")
        if not network.has_cross_traffic:
            raise ValueError("cross_traffic_on_off needs cross_traffic or up_cross_traffic, whose flows are on and off")
    if network.has_cross_traffic and network.drops_chosen_packets:
        raise ValueError("cross_traffic and drop_* exclude each other: which packet is a page's would be chance")


def _words(settings: Settings) -> Iterator[str]:
    for name, where in (("cross_traffic", ""), ("up_cross_traffic", " up")):
        if kinds := settings.get(name):
            yield f"background flows{where}: {', '.join(kinds)}"
    yield from on_off_words(settings.get("cross_traffic_on_off"), "background flows")


IMPAIRMENT = Impairment(
    "cross_traffic",
    CrossTraffic,
    place=6,
    units=units_of(["cross_traffic_on_off"], UNITS),
    check=_check,
    words=_words,
    label=lambda settings: (),
    mahimahi=dict.fromkeys(("cross_traffic", "up_cross_traffic"), "way to the hosts of background flows"),
)
