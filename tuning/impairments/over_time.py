"""Delays and losses that change over time, from files of `tuning.conditions`."""

import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tuning.conditions import DELAY, LOSS, RATE, Conditions, read_conditions
from tuning.impairments.contract import DOWN, UP, Impairment, Settings
from tuning.impairments.loss import Loss
from tuning.impairments.rate import Rate, conditions_in, digest
from tuning.settings import DERIVED


@dataclass(frozen=True, kw_only=True)
class OverTime(Rate, Loss):
    """Delays and losses from `up_conditions` and `down_conditions` are added to other losses and to `min_rtt_ms`, which
    is then the smallest round-trip time."""

    up_conditions_sha256: str | None = field(default=None, metadata=DERIVED)
    down_conditions_sha256: str | None = field(default=None, metadata=DERIVED)

    def conditions_of(self, direction: str) -> Conditions | None:
        """Delay and loss of one direction over time, if they change. Raises OSError, ValueError."""
        path = self.conditions_file_of(direction)
        return None if path is None else read_conditions(pathlib.Path(path))


def _finish(network: OverTime) -> OverTime:
    for direction in (UP, DOWN):
        key = f"{direction}_conditions"
        if (path := network.conditions_file_of(direction)) is None:
            continue
        conditions = conditions_in(path, key)
        if conditions.has(RATE) and network.trace_of(direction) != path:
            raise ValueError(
                f"{key}: {path} has {RATE}, too, which {direction}_trace applies: name it there, too, or take that "
                "column out"
            )
        if not (conditions.has(DELAY) or conditions.has(LOSS)):
            raise ValueError(f"{key}: {path} has neither {DELAY} nor {LOSS}; name it by {direction}_trace alone")
        if conditions.has(LOSS) and network.retransmit_ms is not None:
            raise ValueError(f"{key}: {path} has losses, which retransmit_ms does not repair; leave out either")
        network = replace(network, **{f"{key}_sha256": digest(path)})  # type: ignore[arg-type]  # as one type
    return network


def _words(settings: Settings) -> Iterator[str]:
    for direction in (UP, DOWN):
        if conditions := settings.get(f"{direction}_conditions"):
            yield f"delay and loss {direction} over time, after {pathlib.PurePath(conditions).name}"


def _arguments(network: OverTime) -> Iterator[str]:
    for direction in (UP, DOWN):
        if file := network.conditions_file_of(direction):
            yield from (f"--{direction}-conditions", file)


FILES = ("up_conditions", "down_conditions")
IMPAIRMENT = Impairment(
    "over_time",
    OverTime,
    place=3,
    units=dict.fromkeys(FILES, ""),
    files=FILES,
    finish=_finish,
    words=_words,
    arguments=_arguments,
    mahimahi=dict.fromkeys(FILES, "delays and losses over time"),
)
