"""Gates that compare a run with the others of its site: what is usual there, and whether the run is like it.

The others are the runs of the same site and network over all protocols, so that a protocol under which a page
always breaks is not its own norm. The first `ENOUGH` runs are judged together, each later one against all that
were made before it; so what has been judged stays, and judging again finds the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from measure.run.film import unlike_blocks

# With so many runs a few odd ones do not make the norm.
ENOUGH = 6

# How many requests more may have failed, or exchanges fewer been used, than usual.
MISSED_REQUESTS = 3
MISSED_SHARE = 0.05

# The share of the picture that may look otherwise than in that of the `RESEMBLED` share of others most like it. Of 93
# runs of ten recorded and generated sites, one was more unlike: a carousel caught while it faded (13 %). Of the others,
# none was by more than 0.07 %. So about 1 % are rejected without need, and it is noticed when a picture is missing that
# takes a twentieth of the window.
UNLIKE_SHARE = 0.05
RESEMBLED = 0.25


@dataclass(frozen=True)
class Look:
    """What of a run is compared: requests missed, exchanges used, requests made, and the last frame's blocks."""

    requests: int
    missed: int
    exchanges: int
    last_frame: NDArray[np.uint8] | None


Norm = Callable[[Look, Sequence[Look]], str | None]


def request_missed(look: Look, others: Sequence[Look]) -> str | None:
    """More requests than usual had no answer, or fewer recorded exchanges than usual were asked for."""
    usual_missed = median(other.missed for other in others)
    usual_exchanges = median(other.exchanges for other in others)
    allowed = max(MISSED_REQUESTS, MISSED_SHARE * median(other.requests for other in others))
    if look.missed > usual_missed + allowed:
        return f"{look.missed} requests had no recorded answer, {usual_missed:g} are usual"
    if look.exchanges < usual_exchanges - allowed:
        return f"{look.exchanges} recorded exchanges were used, {usual_exchanges:g} are usual"
    return None


def last_frame_unlike(look: Look, others: Sequence[Look]) -> str | None:
    """The page looks in the end as in few of the other runs."""
    frames = [other.last_frame for other in others if other.last_frame is not None]
    if look.last_frame is None or not frames:
        return None
    distances = sorted(unlike_blocks(look.last_frame, frame) for frame in frames)
    nearest = distances[int(RESEMBLED * (len(distances) - 1))]
    if nearest > UNLIKE_SHARE:
        return f"{100 * nearest:.0f} % or more of the last frame is unlike that of most other runs"
    return None


NORMS: tuple[Norm, ...] = (request_missed, last_frame_unlike)


def judged(looks: Sequence[Look], first: int = 0) -> dict[int, str]:
    """Which of `looks`, from place `first` on, must not count, by their places, and why.

    They are all of a site and network in the order in which they were made, but for those that other gates
    rejected. With fewer than `ENOUGH` nothing is said of any.
    """
    if len(looks) < ENOUGH:
        return {}
    found = {}
    # Until there were enough, nothing was said of any.
    for place in range(first if first >= ENOUGH else 0, len(looks)):
        look = looks[place]
        others = [other for number, other in enumerate(looks[: max(ENOUGH, place)]) if number != place]
        reasons = (f"{norm.__name__}: {told}" for norm in NORMS if (told := norm(look, others)))
        if reason := next(reasons, None):
            found[place] = reason
    return found
