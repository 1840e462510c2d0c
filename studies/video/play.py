"""One play of a video, as its page reports it, and the measures of a play. The functions take a play and read no files.

Times are in ms from the beginning of the navigation, unless a name says otherwise.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from base.structure import from_json
from studies.video.defaults import LADDER_BPS, TRUE
from studies.video.media import FRAMES_PER_S, SEGMENT_S, SOUND_BPS
from studies.video.pages import SEGMENT, SOUND

# The page's performance mark has a name with this prefix (studies/video/page.html).
MARK = "eyelevel-play "
FRAME_MS = 1000 / FRAMES_PER_S
# A picture that stands still for this much longer than a frame is a rebuffer. Shorter ones are hardly visible, and a
# busy machine causes some.
LEAST_REBUFFER_MS = 250
# Rebuffers with less than this time between them count as one. While pictures are late, sound continues (in Chromium
# for 3 s). Single frames are shown when some arrive, but frames that are too late are dropped.
APART_MS = 500
# For this long after a rebuffer, frames may be dropped because they were late, on any machine.
LATE_MS = 1000
# If a machine drops a larger share of frames, the play measured the machine.
MOST_DROPPED = 0.01
# If a picture stands still with more than this in the buffer, the machine is the cause.
MOST_STILL_S = 1.0
# The video may fall behind the clock by this much, apart from rebuffers and shorter stops, because of the machine.
MOST_LAG_S = 0.5
# The player's clock may have shifted by this much from the monotonic clock.
MOST_CLOCK_SHIFT_MS = 500
# A video can begin once this much of it has come.
PLAYABLE_S = 2 * SEGMENT_S
# The "balanced" weights of Yin et al. (SIGCOMM 2015): a second of waiting costs as much as one segment whose rate is 3
# Mbit/s lower; a switch costs as much as it changes the rate.
WAIT_MBPS_PER_S, SWITCH_WEIGHT = 3.0, 1.0


@dataclass(frozen=True)
class Segment:
    """A segment that was requested. `protocol`: its name in ALPN; `bytes`: fewer if the segment did not arrive
    completely."""

    url: str
    began_ms: float
    first_byte_ms: float
    ended_ms: float
    protocol: str
    bytes: int

    @property
    def quality(self) -> str:
        """The name of the segment's quality, or `SOUND`."""
        match = SEGMENT.fullmatch(self.url)
        return match["quality"] if match else ""

    @property
    def number(self) -> int:
        """The segment's place in the video, from 1."""
        match = SEGMENT.fullmatch(self.url)
        return int(match["number"]) if match else 0

    @property
    def bps(self) -> int:
        """The rate of the segment's quality."""
        return {**LADDER_BPS, TRUE: LADDER_BPS["hd720"], SOUND: SOUND_BPS}.get(self.quality, 0)

    @property
    def is_whole(self) -> bool:
        return self.bytes == self.bps * SEGMENT_S // 8


@dataclass(frozen=True)
class Gap:
    """The time between two observed frames, during which `frames` more frames were shown."""

    from_ms: float
    to_ms: float
    frames: int

    @property
    def still_ms(self) -> float:
        """How long the picture stood still, beyond the time of its frames."""
        return self.to_ms - self.from_ms - self.frames * FRAME_MS


@dataclass(frozen=True)
class Play:
    """The page's report of a play (studies/video/page.html).

    `buffer`: samples of a time, the position in the video at that time, the position up to which it could continue (s),
    and the number of frames dropped so far. `gaps`: the long gaps between frames. `frames`: the number of decoded
    frames.
    """

    first_frame_ms: float | None
    last_frame_ms: float | None
    ended_ms: float
    gaps: tuple[Gap, ...]
    buffer: tuple[tuple[float, float, float, int], ...]
    events: tuple[tuple[float, str], ...]
    errors: tuple[str, ...]
    segments: tuple[Segment, ...]
    frames: int
    clock_shift_ms: float

    @cached_property
    def rebuffers(self) -> tuple[tuple[float, float], ...]:
        """When the picture began to stand still, and for how long (ms). The last rebuffer may last until the end of the
        play."""
        gaps = self.gaps
        if self.last_frame_ms is not None:
            gaps = (*gaps, Gap(self.last_frame_ms, self.ended_ms, 1))
        joint: list[tuple[float, float, float]] = []
        for gap in gaps:
            if gap.still_ms <= LEAST_REBUFFER_MS:
                continue
            before = joint.pop() if joint and gap.from_ms - joint[-1][1] < APART_MS else (gap.from_ms, 0.0, 0.0)
            joint.append((before[0], gap.to_ms, before[2] + gap.still_ms))
        return tuple((from_ms, still_ms) for from_ms, _, still_ms in joint)

    @property
    def rebuffer_s(self) -> float:
        return sum(still_ms for _, still_ms in self.rebuffers) / 1000

    @cached_property
    def dropped_frames(self) -> int:
        """How many frames were dropped although they had arrived in time: those that are not near a rebuffer."""
        still = [(from_ms, from_ms + still_ms + LATE_MS) for from_ms, still_ms in self.rebuffers]
        dropped = 0
        for (before_ms, _, _, before), (at_ms, _, _, now) in pairwise(self.buffer):
            if not any(from_ms < at_ms and before_ms < to_ms for from_ms, to_ms in still):
                dropped += now - before
        return dropped

    @property
    def played_s(self) -> float:
        """How much of the video was played (s)."""
        return self.buffer[-1][1] if self.buffer else 0.0

    @property
    def playing_s(self) -> float:
        """How long the picture moved (s); sound may have continued without it."""
        return 0.0 if self.first_frame_ms is None else (self.ended_ms - self.first_frame_ms) / 1000 - self.rebuffer_s

    @property
    def lag_s(self) -> float:
        """How far the video fell behind (s): the time for which the picture moved since the first frame, less the
        length of video that was played. Negative if sound continued without pictures."""
        if self.first_frame_ms is None:
            return 0.0
        short_ms = sum(gap.still_ms for gap in self.gaps if 0 < gap.still_ms <= LEAST_REBUFFER_MS)
        return self.playing_s - short_ms / 1000 - self.played_s

    @property
    def stopped_s(self) -> float:
        """The part of the rebuffers (s) in which the player's clock stood still, too: neither pictures nor sound
        continued."""
        return min(max(0.0, self.rebuffer_s + self.lag_s), self.rebuffer_s)

    @property
    def skipped_s(self) -> float:
        """The part of the rebuffers (s) in which sound continued, and the video skipped its pictures."""
        return self.rebuffer_s - self.stopped_s

    @cached_property
    def pictures(self) -> tuple[Segment, ...]:
        """The complete segments of pictures, in the order in which they came."""
        whole = (one for one in self.segments if one.is_whole and one.quality != SOUND)
        return tuple(sorted(whole, key=lambda one: one.ended_ms))

    @cached_property
    def played_mbps(self) -> Mapping[int, float]:
        """Number of a segment → its rate, for each segment whose playing at least began. If a segment came twice, the
        later one is played. Segments whose sound was played without pictures are missing."""
        rates = {one.number: one.bps / 1e6 for one in self.pictures}
        return {number: rates[number] for number in sorted(rates) if self.played_s_of(number) > 0}

    def played_s_of(self, number: int) -> float:
        """How much of the segment with this number was played (s)."""
        return min(max(self.played_s - SEGMENT_S * (number - 1), 0.0), SEGMENT_S)

    @property
    def switches_mbps(self) -> tuple[float, ...]:
        """The size of each change of the rate."""
        rates = self.played_mbps.values()
        return tuple(abs(after - before) for before, after in pairwise(rates) if after != before)


def play_of(page: Mapping[str, Any]) -> Play | None:
    """The report of a page's play, from Browsertime's results; None if the page reported nothing. Raises EyelevelError
    if the report is broken."""
    marks = [
        mark.get("name", "")
        for scripts in page.get("browserScripts", ())
        for mark in scripts.get("timings", {}).get("userTimings", {}).get("marks", ())
    ]
    reports = [name.removeprefix(MARK) for name in marks if name.startswith(MARK)]
    return from_json(reports[-1], Play, "what the page says of its play is broken") if reports else None


def fault(play: Play | None, versions: Collection[str]) -> str | None:
    """Why a play that should use these `versions` of HTTP must not count; None if it may."""
    if play is None:
        return "the page did not report a play"
    if play.errors:
        return f"the player failed: {play.errors[0]}"
    for segment in play.segments:
        if segment.is_whole and segment.protocol not in versions:
            came = segment.protocol or "an unknown protocol"
            return f"a segment came over {came} instead of {' or '.join(versions)}: {segment.url}"
    if abs(play.clock_shift_ms) > MOST_CLOCK_SHIFT_MS:
        return f"the player's clock differed from the machine's by {play.clock_shift_ms / 1000:+.1f} s"
    if play.first_frame_ms is None and any(until - at >= PLAYABLE_S for _, at, until, _ in play.buffer):
        return "the video did not begin though it had come"
    for from_ms, still_ms in play.rebuffers:
        _, at, until, _ = max((sample for sample in play.buffer if sample[0] <= from_ms), default=(0.0, 0.0, 0.0, 0))
        if until - at > MOST_STILL_S:
            return f"the picture stood still for {still_ms:.0f} ms with {until - at:.1f} s in the buffer"
    if play.lag_s > MOST_LAG_S:
        return f"the video went {play.lag_s:.1f} s less far than it had time for: the machine was busy"
    if play.frames and play.dropped_frames / play.frames >= MOST_DROPPED:
        return f"{play.dropped_frames} of {play.frames} frames were dropped, so that the machine was measured"
    return None


@dataclass(frozen=True)
class Measure:
    """A number of a play; None if the play lacks it.

    `name`: its column; `heading`: its heading; `read`: computes it; `form`: its format; `of_rules`: it is meaningful
    only if the quality can change.
    """

    name: str
    heading: str
    read: Callable[[Play, int], float | None]
    form: str = "{:.2f}"
    of_rules: bool = False


def first_frame_s(play: Play, segments: int) -> float | None:
    """When the first frame was shown."""
    return None if play.first_frame_ms is None else play.first_frame_ms / 1000


def _once_begun(number: Callable[[Play], float]) -> Callable[[Play, int], float | None]:
    """Reads a number only from videos that began: a video that never began has no rebuffers, which would look good."""
    return lambda play, segments: None if play.first_frame_ms is None else number(play)


def _per_playing_s(number: Callable[[Play], float]) -> Callable[[Play, int], float | None]:
    return lambda play, segments: number(play) / play.playing_s if play.playing_s else None


def loaded_s(play: Play, segments: int) -> float:
    """How many seconds of the video came, whether played or not."""
    return float(SEGMENT_S * len({one.number for one in play.pictures}))


def share_loaded(play: Play, segments: int) -> float:
    """The share of a video of `segments` segments that came."""
    return loaded_s(play, segments) / (SEGMENT_S * segments)


def mean_mbps(play: Play, segments: int) -> float | None:
    """The mean rate of the played video; the last segment counts only as far as it was played."""
    rates = play.played_mbps
    if not rates:
        return None
    played_s = {number: play.played_s_of(number) for number in rates}
    mean = sum(mbps * played_s[number] for number, mbps in rates.items()) / sum(played_s.values())
    # Without this, plays of one quality would differ by rounding errors. The difference would even be significant if
    # each protocol had an error of its own.
    return round(mean, 9)


def switch_mbps(play: Play, segments: int) -> float | None:
    """The mean size of the changes of the rate; None if it never changed."""
    changes = play.switches_mbps
    return sum(changes) / len(changes) if changes else None


def qoe(play: Play, segments: int) -> float:
    """The score of Yin et al. (SIGCOMM 2015, equation 5, with their balanced weights), over as many segments as could
    have been played. A play that begins at once, never waits and never switches has its rate in Mbit/s as its score. A
    segment counts only as far as its pictures were shown."""
    return _score(play, segments, play.playing_s, play.rebuffer_s)


def qoe_by_clock(play: Play, segments: int) -> float:
    """The score of `qoe` by the player's clock, which continues with the sound: a segment counts as far as it was
    played, with or without its pictures, and rebuffers count only while the player stopped."""
    return _score(play, segments, play.played_s, play.stopped_s)


def _score(play: Play, segments: int, seen_s: float, stood_s: float) -> float:
    """The score of a play in which `seen_s` counted, and which stood still for `stood_s` after its first frame."""
    wait_s = stood_s + (play.ended_ms if play.first_frame_ms is None else play.first_frame_ms) / 1000
    rates_mbps = (mean_mbps(play, segments) or 0) * seen_s / SEGMENT_S
    score = rates_mbps - SWITCH_WEIGHT * sum(play.switches_mbps) - WAIT_MBPS_PER_S * wait_s
    return score / (play.ended_ms / 1000 / SEGMENT_S)


MEASURES = [
    Measure("first_frame_s", "first frame [s]", first_frame_s),
    Measure("rebuffers", "rebuffers", _once_begun(lambda play: len(play.rebuffers)), "{:.1f}"),
    Measure("rebuffer_s", "rebuffers [s]", _once_begun(lambda play: play.rebuffer_s)),
    Measure("stopped_s", "of these, player stopped [s]", _once_begun(lambda play: play.stopped_s)),
    Measure("skipped_s", "of these, pictures skipped [s]", _once_begun(lambda play: play.skipped_s)),
    Measure("rebuffer_ratio", "rebuffering per playing time", _per_playing_s(lambda play: play.rebuffer_s), "{:.1%}"),
    Measure("rebuffers_per_s", "rebuffers per playing s", _per_playing_s(lambda play: len(play.rebuffers)), "{:.3f}"),
    Measure("loaded_s", "video loaded [s]", loaded_s, "{:.1f}"),
    Measure("share_loaded", "share loaded", share_loaded, "{:.1%}"),
    Measure(
        "in_vain", "segments in vain", lambda play, segments: sum(not one.is_whole for one in play.segments), "{:.1f}"
    ),
    Measure("mean_mbps", "mean rate played [Mbit/s]", mean_mbps, of_rules=True),
    Measure("switches", "switches", lambda play, segments: len(play.switches_mbps), "{:.1f}", of_rules=True),
    Measure("switch_mbps", "size of a switch [Mbit/s]", switch_mbps, of_rules=True),
    Measure("dropped", "frames dropped", lambda play, segments: play.dropped_frames / max(1, play.frames), "{:.2%}"),
    Measure("qoe", "QoE [Mbit/s]", qoe),
    Measure("qoe_by_clock", "QoE by the player's clock [Mbit/s]", qoe_by_clock),
]
