"""Gates that compare a run with the others of its site: what is expected there, and whether the run meets it.

The others are the runs of the same site, network and browser over all protocols: where a page always breaks under one
protocol, the others say what is expected. The first `ENOUGH` runs are judged together, each later one against all that
were made before it. So a judgement stays when more runs come. A new expectation is an entry in `EXPECTATIONS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from dataset.gates import EXCHANGE_UNUSED, LAST_FRAME_UNLIKE, REQUEST_MISSED
from dataset.reasons import Reason
from films.frames import unlike_blocks

# In this many runs, a few odd ones do not decide what is expected.
ENOUGH = 6

# A run may have this many more failed requests, or fewer used exchanges, than usual: the larger of a number and a share
# of the requests.
MISSED_REQUESTS = 3
MISSED_SHARE = 0.05

# A run's last frame must match those of the `RESEMBLED` share of other runs that resemble it most, except for this
# share of the frame. Among 93 runs of ten recorded and generated sites, one differed by more: a carousel that was just
# fading (13 %). All others differed by 0.07 % at most. So about 1 % of runs are rejected needlessly, and a missing
# picture that takes a twentieth of the window is noticed.
UNLIKE_SHARE = 0.05
RESEMBLED = 0.25


@dataclass(frozen=True)
class RunOutcome:
    """The compared properties of a run: requests made and missed, exchanges used, and the last frame's blocks."""

    requests: int
    missed: int
    exchanges: int
    last_frame: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Expectation:
    """A rule: `name` stands in `runs.csv`; `check` returns why a run must not count beside others, or None."""

    name: str
    check: Callable[[RunOutcome, Sequence[RunOutcome]], str | None]


def request_missed(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """More requests than usual had no answer: a rule for pages that make the same requests at any speed."""
    usual_missed = median(other.missed for other in others)
    if run.missed > usual_missed + _allowed(others):
        return f"{run.missed} requests had no recorded answer, {usual_missed:g} are usual"
    return None


def exchange_unused(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """Fewer recorded exchanges than usual were asked for."""
    usual_exchanges = median(other.exchanges for other in others)
    if run.exchanges < usual_exchanges - _allowed(others):
        return f"{run.exchanges} recorded exchanges were used, {usual_exchanges:g} are usual"
    return None


def last_frame_unlike(run: RunOutcome, others: Sequence[RunOutcome]) -> str | None:
    """The page's last frame resembles those of few other runs."""
    frames = [other.last_frame for other in others if other.last_frame is not None]
    if run.last_frame is None or not frames:
        return None
    # Most frames are the same object (`measure.campaign.outcomes`), which is compared once.
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
# Not in EXPECTATIONS: pages may request what was not recorded, and how much may depend on the protocol. (On slow
# networks, imdb reports its times in nine requests over QUIC and in two over TCP; the expectation would have rejected
# every run over QUIC.) A request in place of a recorded one leaves an exchange unused, which an expectation does check.
EXPECTATIONS: list[Expectation] = [
    Expectation(EXCHANGE_UNUSED, exchange_unused),
    Expectation(LAST_FRAME_UNLIKE, last_frame_unlike),
]


def judge(
    runs: Sequence[RunOutcome], first: int = 0, expectations: Sequence[Expectation] = EXPECTATIONS
) -> dict[int, Reason]:
    """Which of `runs`, from place `first` on, must not count by `expectations`, by their places, and why.

    They are all of a site and network in the order in which they were made, without those that other gates rejected.
    With fewer than `ENOUGH` none is rejected.
    """
    if len(runs) < ENOUGH:
        return {}
    rejected = {}
    # Until there were enough, none was judged.
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
