"""Gates that compare a run with the other runs of its site.

The other runs have the same site, network and browser, over all protocols: if a page always breaks with one protocol,
the other protocols show what is expected. The first `ENOUGH` runs are judged together, each later run against all runs
made before it. So a judgement does not change when more runs come. To add an expectation, add an entry to
`EXPECTATIONS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from dataset.gates import EXCHANGE_UNUSED, LAST_FRAME_UNLIKE, REQUEST_MISSED
from dataset.reasons import Reason
from films.frames import unlike_blocks

# Among ENOUGH runs, a few odd ones do not change what is usual.
ENOUGH = 6

# A run may have this many more failed requests, or fewer used exchanges, than usual: a fixed number or a share of the
# requests, whichever is larger.
MISSED_REQUESTS = 3
MISSED_SHARE = 0.05

# A run's last frame is compared with those of the other runs. The `RESEMBLED` share of them that is most like it may
# differ from it in at most `UNLIKE_SHARE` of the frame. Among 93 runs of ten recorded and generated sites, one differed
# by more (13 %): a carousel that was just fading. All others differed by 0.07 % at most. So about 1 % of runs are
# rejected needlessly, and a missing picture is noticed if it covers a twentieth of the window.
UNLIKE_SHARE = 0.05
RESEMBLED = 0.25


@dataclass(frozen=True)
class RunOutcome:
    """The properties of a run that are compared: requests made and missed, exchanges used, and the last frame's
    blocks."""

    requests: int
    missed: int
    exchanges: int
    last_frame: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Expectation:
    """A rule. Its `name` appears in `runs.csv`; `check` returns why a run must not count, given the other runs, or
    None."""

    name: str
    check: Callable[[RunOutcome, Sequence[RunOutcome]], str | None]


def request_missed(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """More requests than usual had no answer. For pages that make the same requests at any speed."""
    usual_missed = median(other.missed for other in others)
    if run.missed > usual_missed + _allowed(others):
        return f"{run.missed} requests had no recorded response, {usual_missed:g} are usual"
    return None


def exchange_unused(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """Fewer recorded exchanges than usual were used."""
    usual_exchanges = median(other.exchanges for other in others)
    if run.exchanges < usual_exchanges - _allowed(others):
        return f"{run.exchanges} recorded exchanges were used, {usual_exchanges:g} are usual"
    return None


def last_frame_unlike(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """The page's last frame resembles that of only a few other runs."""
    frames = [other.last_frame for other in others if other.last_frame is not None]
    if run.last_frame is None or not frames:
        return None
    # Most frames are the same object (`measure.campaign.outcomes`); each object is compared once.
    distance_of = {
        id(frame): unlike_blocks(run.last_frame, frame) for frame in {id(one): one for one in frames}.values()
    }
    distances = sorted(distance_of[id(frame)] for frame in frames)
    nearest = distances[int(RESEMBLED * (len(distances) - 1))]
    if nearest > UNLIKE_SHARE:
        return f"{100 * nearest:.0f} % or more of the last frame is unlike that of most other runs"
    return None


def _allowed(others: Sequence[RunOutcome]) -> float:
    return max(MISSED_REQUESTS, MISSED_SHARE * median(other.requests for other in others))


MISSED_REQUEST_EXPECTATION = Expectation(REQUEST_MISSED, request_missed)
# The expectation above is not in EXPECTATIONS: pages may make requests that were not recorded, and their number may
# depend on the protocol. (On slow networks, imdb reports its times in nine requests over QUIC and in two over TCP; this
# expectation would have rejected every run over QUIC.) If a request replaces a recorded one, an exchange stays unused,
# and EXCHANGE_UNUSED rejects the run.
EXPECTATIONS: list[Expectation] = [
    Expectation(EXCHANGE_UNUSED, exchange_unused),
    Expectation(LAST_FRAME_UNLIKE, last_frame_unlike),
]


def judge(
    runs: Sequence[RunOutcome], first: int = 0, expectations: Sequence[Expectation] = EXPECTATIONS
) -> dict[int, Reason]:
    """Place in `runs` → why that run must not count by `expectations`; only runs from place `first` on are judged.

    `runs` are all of one site, network and browser, in the order in which they were made, without those that other
    gates rejected. With fewer than `ENOUGH` runs, none is rejected.
    """
    if len(runs) < ENOUGH:
        return {}
    rejected = {}
    # While there were fewer than `ENOUGH` runs, none was judged; so the first ones may still have to be.
    for place in range(first if first >= ENOUGH else 0, len(runs)):
        others = [other for number, other in enumerate(runs[: max(ENOUGH, place)]) if number != place]
        reasons = (
            Reason(expectation.name, text)
            for expectation in expectations
            if (text := expectation.check(runs[place], others))
        )
        if reason := next(reasons, None):
            rejected[place] = reason
    return rejected
