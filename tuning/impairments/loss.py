"""Random losses of packets: their probability, their bursts, and links that retransmit lost packets."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tuning.impairments.contract import BOTH, DOWN, UP, Impairment, Path, Settings, units_of


@dataclass(frozen=True)
class GilbertElliott:
    """Losses that come in bursts (Gilbert 1960, Elliott 1963).

    The network is in a good or a bad state, which may change with each packet; the probability of loss depends on the
    state. All fields are probabilities.
    """

    good_to_bad: float
    bad_to_good: float
    loss_in_bad: float = 1
    loss_in_good: float = 0

    @property
    def bad_share(self) -> float:
        """The share of packets sent in the bad state."""
        return self.good_to_bad / (self.good_to_bad + self.bad_to_good)

    @property
    def loss(self) -> float:
        """The share of packets that are lost."""
        return self.bad_share * self.loss_in_bad + (1 - self.bad_share) * self.loss_in_good

    @property
    def loss_after_loss(self) -> float:
        """The share of packets lost among those that follow a lost packet."""
        was_bad = self.bad_share * self.loss_in_bad / self.loss
        bad = was_bad * (1 - self.bad_to_good) + (1 - was_bad) * self.good_to_bad
        return bad * self.loss_in_bad + (1 - bad) * self.loss_in_good

    @property
    def memory(self) -> float:
        """How strongly the state depends on that at the packet before: 0 means not at all."""
        return 1 - self.good_to_bad - self.bad_to_good

    @classmethod
    def bursts(cls, loss: float, packets: float) -> "GilbertElliott":
        """Bursts of `packets` packets on average, all of which are lost; the share `loss` of all packets is lost."""
        return cls(good_to_bad=loss / (1 - loss) / packets, bad_to_good=1 / packets)


@dataclass(frozen=True, kw_only=True)
class Loss(Path):
    """`loss` is the probability that a packet or its answer is lost.

    Both directions share it, or `loss_on` names the only one that has it. Instead, `up_loss` and `down_loss` give the
    probability of one direction each, or `gilbert_elliott` a model for each direction that loses packets; then `loss`
    is computed from them. `burst_packets`: the mean length of a burst of losses.

    With `retransmit_ms`, the link repeats a packet that it would lose until it arrives, in order, later by
    `retransmit_ms` for each failed try (ARQ, RFC 3366); after `retransmit_tries` tries, the first included, the packet
    is lost. With `retransmit_reorder`, later packets do not wait for it.
    """

    loss: float = 0
    loss_on: str = BOTH
    up_loss: float | None = None
    down_loss: float | None = None
    burst_packets: float | None = None
    gilbert_elliott: GilbertElliott | None = None
    retransmit_ms: float | None = None
    retransmit_tries: int | None = None
    retransmit_reorder: bool | None = None

    def loss_of(self, direction: str) -> float:
        """The probability of loss in one direction; a packet and its answer both survive with probability 1 - loss.

        On a link that retransmits, this applies to each try. The shells compute it in the same way for `mm-net
        --profile` (`one_way_loss` in Rust).
        """
        if self.up_loss is not None or self.down_loss is not None:
            return (self.up_loss if direction == UP else self.down_loss) or 0.0
        if self.loss_on == BOTH:
            return 1 - math.sqrt(1 - self.loss)
        return self.loss if self.loss_on == direction else 0.0

    def lasting_loss_of(self, direction: str) -> float:
        """The probability that a packet is lost in one direction even after all retransmissions of the link."""
        loss = self.loss_of(direction)
        if self.retransmit_ms is None:
            return loss
        return 0.0 if self.retransmit_tries is None else loss**self.retransmit_tries

    def bursts_of(self, direction: str) -> GilbertElliott | None:
        """The model by which one direction loses packets in bursts; None if it does not."""
        if not (loss := self.loss_of(direction)):
            return None
        return GilbertElliott.bursts(loss, self.burst_packets) if self.burst_packets else self.gilbert_elliott


def _check(network: Loss) -> None:
    if not 0 <= network.loss < 1:
        raise ValueError("loss must be at least 0 and less than 1")
    if network.loss_on not in (BOTH, UP, DOWN):
        raise ValueError(f"loss_on must be {BOTH}, {UP} or {DOWN}")
    one_way = {"up_loss": network.up_loss, "down_loss": network.down_loss}
    given = {name: value for name, value in one_way.items() if value is not None}
    for name, value in given.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and less than 1")
    ways = [*(["loss"] if network.loss else []), *(["up_loss or down_loss"] if given else [])]
    ways += ["gilbert_elliott"] if network.gilbert_elliott else []
    if len(ways) > 1:
        raise ValueError(f"give {' or '.join(ways[:2])}, not both")
    if given and network.loss_on != BOTH:
        raise ValueError("loss_on is only for loss; up_loss and down_loss name their direction themselves")
    if model := network.gilbert_elliott:
        for name, value in vars(model).items():
            if not 0 <= value <= 1:
                raise ValueError(f"gilbert_elliott.{name} must be from 0 to 1")
        if not model.good_to_bad or not model.bad_to_good or not 0 < model.loss < 1:
            raise ValueError("gilbert_elliott must become bad and good again, and lose some packets, not all")
    bursts, retransmits = network.burst_packets, network.retransmit_ms is not None
    losses = [loss for direction in (UP, DOWN) if (loss := network.loss_of(direction))]
    if bursts is not None:
        if network.gilbert_elliott:
            raise ValueError("give burst_packets or gilbert_elliott, not both")
        if not losses or bursts < 1 or any(GilbertElliott.bursts(loss, bursts).good_to_bad > 1 for loss in losses):
            raise ValueError("burst_packets must be at least 1, and long enough to make up a loss of more than 0")
    if retransmits and (bursts is not None or network.gilbert_elliott):
        raise ValueError("retransmit_ms is for losses that do not come in bursts")
    if retransmits and not (network.retransmit_ms and network.retransmit_ms > 0 and losses):
        raise ValueError("retransmit_ms must be more than 0, and needs a loss of more than 0, which it repairs")
    if not retransmits and (network.retransmit_tries is not None or network.retransmit_reorder is not None):
        raise ValueError("retransmit_tries and retransmit_reorder need retransmit_ms")
    if network.retransmit_tries is not None and network.retransmit_tries < 2:
        raise ValueError("retransmit_tries must be at least 2: the first try and a repeat")


def _finish(network: Loss) -> Loss:
    """`network` with `loss`, the round trip's probability, computed from the keys of its directions if these are
    given."""
    if network.gilbert_elliott:
        mean = network.gilbert_elliott.loss
        return replace(network, loss=1 - (1 - mean) ** 2 if network.loss_on == BOTH else mean)
    if network.up_loss is not None or network.down_loss is not None:
        return replace(network, loss=1 - (1 - network.loss_of(UP)) * (1 - network.loss_of(DOWN)))
    return network


def _words(settings: Settings) -> Iterator[str]:
    if settings.get("loss") and settings.get("loss_on", BOTH) != BOTH:
        yield f"loss on the {settings['loss_on']}link alone"
    yield from _ways(settings)
    if settings.get("retransmit_ms"):
        tries = f", {settings['retransmit_tries']} tries" if settings.get("retransmit_tries") else ""
        order = ", out of order" if settings.get("retransmit_reorder") else ""
        yield f"the link repairs losses, {settings['retransmit_ms']:g} ms a try{tries}{order}"


def _ways(settings: Settings) -> Iterator[str]:
    one_way = {direction: settings.get(f"{direction}_loss") for direction in (UP, DOWN)}
    if given := [f"{100 * loss:g} % {direction}" for direction, loss in one_way.items() if loss is not None]:
        yield f"loss {', '.join(given)}"
    if settings.get("burst_packets"):
        yield f"losses in bursts of {settings['burst_packets']:g} packets"
    if model := settings.get("gilbert_elliott"):
        states = f"good to bad {model['good_to_bad']:g}, back {model['bad_to_good']:g}"
        losses = f"loss {100 * model['loss_in_bad']:g} % and {100 * model['loss_in_good']:g} %"
        yield f"losses by Gilbert and Elliott ({states}; {losses})"


def _label(settings: Settings) -> Iterator[str]:
    on = settings.get("loss_on", BOTH)
    text = f"{100 * settings.get('loss', 0):g} % loss{'' if on == BOTH else f' on the {on}link'}"
    if settings.get("retransmit_ms"):
        text += f" repaired in {settings['retransmit_ms']:g} ms"
        text += f" {settings['retransmit_tries'] - 1} times" if settings.get("retransmit_tries") else ""
        text += " out of order" if settings.get("retransmit_reorder") else ""
    yield from [text] if settings.get("loss") else []
    yield from _ways(settings)


def _arguments(network: Loss) -> Iterator[str]:
    up_loss, down_loss = network.loss_of(UP), network.loss_of(DOWN)
    if not up_loss and not down_loss:
        return
    ways = {"--loss": up_loss} if up_loss == down_loss else {"--loss-up": up_loss, "--loss-down": down_loss}
    yield from (word for option, loss in ways.items() if loss for word in (option, f"{loss:.9f}"))
    yield from ["--burst", f"{network.burst_packets:.6f}"] if network.burst_packets else []
    if model := network.gilbert_elliott:
        numbers = (model.good_to_bad, model.bad_to_good, model.loss_in_bad, model.loss_in_good)
        yield from ("--gilbert-elliott", ",".join(f"{number:.9f}" for number in numbers))
    yield from ["--retransmit", f"{network.retransmit_ms:.6f}"] if network.retransmit_ms is not None else []
    yield from ["--retransmit-tries", str(network.retransmit_tries)] if network.retransmit_tries else []
    yield from ["--retransmit-reorder"] if network.retransmit_reorder else []


IMPAIRMENT = Impairment(
    "loss",
    Loss,
    place=5,
    units={
        **{"loss": "loss", "up_loss": "up-loss", "down_loss": "down-loss", "loss_on": "", "burst_packets": "burst"},
        **{"retransmit_ms": "arq", "retransmit_tries": "tries", "retransmit_reorder": "arq-reorder"},
        **units_of(
            ["gilbert_elliott"], {"good_to_bad": "p", "bad_to_good": "r", "loss_in_bad": "bad", "loss_in_good": "good"}
        ),
    },
    check=_check,
    finish=_finish,
    words=_words,
    label=_label,
    arguments=_arguments,
    mahimahi={
        **dict.fromkeys(("burst_packets", "gilbert_elliott"), "losses in bursts"),
        "retransmit_ms": "links that repeat what they lose",
    },
)
