"""How a sender answers to exactly one loss: the share of its window that it keeps, and how the window grows after it.

The window is read from the wire: a sender that always has something to send keeps as much in flight as its congestion
window lets it, so the most in flight within a short time is the window. The server's own account of its window is kept
for display, and shows whether the window was in use. No check passes by it, except that of the kept window of a server
whose pacing leaves less in flight than its window then. There the wire must not show more in flight than that window.

Where there was no loss or more than one, the window was not steady before it, or was not in use after it, nothing can
be judged, and another load is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from base.errors import EyelevelError
from dataset.checks import Check, between, unchecked, within
from dataset.observations import KEPT_TOLERANCE, LOSS_RESPONSE
from measure.campaign.single_load import single_load
from measure.run.monitor import CAPTURE
from measure.run.setting import Setting
from measure.validate.contract import Bench, Validation
from measure.validate.protocol.congestion_controls import BEHAVIOURS
from measure.validate.protocol.cubic import CubicCurve, Numbers
from measure.validate.protocol.flight import Flight, read_flight
from measure.validate.protocol.server_account import ServerWindow, server_account
from measure.validate.protocol.settings import BULK_LOADING, KEYS, SEED, ObservationMethod
from measure.validate.site import LOSS_PAGE
from record.site import Site
from servers.registry import server_of
from tuning.networks import Network
from tuning.protocols import Protocol

# One packet in the middle of the transfer is dropped on its way to the browser; the queue holds all else. Slow start
# ends without a loss when the queue begins to grow (HyStart), at two to five times the bandwidth-delay product of 52
# packets, after some 600 packets; what BBR's start filled is drained after some 1000. So the window is steady, large
# (Cubic's 150 to 250 packets) and in use when the packet is lost, and it is by K (4 to 6 s later) what it was. The rate
# is one that a busy machine keeps up with.
DROPPED_PACKET = 1600
ONE_LOSS = Network(
    "one loss", min_rtt_ms=60, up_mbps=10, down_mbps=10, queue_ms=600, drop_down_packets=(DROPPED_PACKET,)
)
# A machine that is busy enough brings about what makes a load useless.
TRIES = 4

# The share of a round trip over which the maximum in flight is taken where the window changes all the time, so that a
# server that had to wait for the processor is not taken for one with a small window.
MOMENT_ROUNDS = 1 / 4
# The share for the window that was kept: shorter, since it grows by a thirtieth of itself in each round trip.
KEPT_ROUNDS = 1 / 16
# The spans where the window goes up and down by itself: BBR sends more in one of eight round trips, BBRv2 less for up
# to 0.7 s.
CYCLE_S, RETURN_S = 0.5, 1.0
# If the window was smaller by this share a round trip before the loss, it was still growing.
STEADY_SHARE = 0.9
# The shortfall, as a share of the window before, that is accepted between the bytes in flight and those that the server
# would allow, at the two moments that are compared. Where less is in flight, the server or the browser had to wait for
# the processor just then.
UNUSED_SHARE = 0.01
# The share of K for which the growth must have been seen.
LEAST_K = 0.6

KEPT = "window kept after a loss"
REGROWTH = "time to grow back after a loss"
# As multiples of K. Linux is up to an eighth later, since it comes nearer to its aim only with acknowledgements, which
# the queue delays. quiche is a tenth earlier, since it takes the window of a round trip later, and more where it had to
# wait for the processor: after each wait it begins the rest of its curve anew, at that window.
REGROWTH_BOUNDS = (0.5, 1.25)
# The factors that are tried for the time of the curve.
STRETCHES = np.geomspace(0.25, 4, 801)
# How finely the window is sampled, and from how long before the end of the recovery on it is kept for figures.
SAMPLE_S, LEAD_S = 0.05, 1.0


@dataclass(frozen=True)
class LossResponse:
    """Observations of the answer to one loss; windows are in segments of the server (`segment_bytes`).

    `before`: the window when the server could first know of the loss; `after`: that at the end of the recovery.
    `rtt_s`: the round-trip time between the two. `at_s`: times since the end of the recovery. At each of these,
    `window` is the most that was in flight shortly before, and `account` the window that the server itself reports, or
    NaN where it reports none.
    """

    segment_bytes: int
    before: float
    after: float
    rtt_s: float
    at_s: Numbers
    window: Numbers
    account: Numbers

    @property
    def kept_share(self) -> float:
        """The share of the window that was kept."""
        return self.after / self.before

    def stretch(self, curve: CubicCurve) -> float:
        """How many times as long as by `curve` the window took to grow, by the times that fit best.

        Deviations count, not their squares: a machine that was busy elsewhere makes some samples too small.
        """
        grows = (self.at_s > 0) & (self.at_s < curve.k_s)
        at_s, window = self.at_s[grows], self.window[grows]
        if not len(at_s) or at_s[-1] < LEAST_K * curve.k_s:
            raise EyelevelError(f"the transfer ended before the window could grow back, in {curve.k_s:.1f} s")
        # The loss is made good when the window is what it was; what comes after is another part of the curve.
        regrowths = (np.minimum(curve.window(at_s / stretch), curve.before) for stretch in STRETCHES)
        deviations = [np.abs(window - regrowth).sum() for regrowth in regrowths]
        return float(STRETCHES[int(np.argmin(deviations))])

    def document(self, curve: CubicCurve | None) -> dict[str, Any]:
        """These observations as JSON takes them, for figures and readers, with the expected window if that is known."""
        expected = curve.window(np.maximum(self.at_s, 0)) if curve else np.full(len(self.at_s), np.nan)
        expected = np.where(self.at_s >= 0, expected, np.nan)
        columns = {"at_s": self.at_s, "in_flight": self.window, "server": self.account, "expected": expected}
        series = {
            name: [None if np.isnan(v) else round(float(v), 2) for v in column] for name, column in columns.items()
        }
        return {
            "before": round(self.before, 2),
            "after": round(self.after, 2),
            "rtt_s": round(self.rtt_s, 4),
            "segment_bytes": self.segment_bytes,
            "series": series,
        }


def observe_loss_response(
    protocol: Protocol, sites: Mapping[str, Site], network: Network = ONE_LOSS, tries: int = TRIES
) -> LossResponse:
    """Load the validation page over `protocol` in the browser behind `network`, which drops one packet. Raises
    EyelevelError."""
    setting = Setting(sites[LOSS_PAGE], network, protocol, BULK_LOADING, SEED)
    faults: list[str] = []
    for number in range(1, tries + 1):
        with single_load(setting, ObservationMethod(), number) as folder:
            try:
                flight = read_flight(folder / CAPTURE, folder / KEYS, protocol.http_version)
                return loss_response(protocol, flight, server_account(folder, flight.recovered_at_s))
            except EyelevelError as error:
                faults.append(str(error))
    raise EyelevelError(f"in none of {tries} loads could the answer to one loss be seen: {'; '.join(faults)}")


def loss_response(protocol: Protocol, flight: Flight, account: Sequence[ServerWindow]) -> LossResponse:
    """The answer to the loss in `flight`; `account` is the server's, by time. Raises EyelevelError if it is none."""
    if flight.lost_packets != 1:
        raise EyelevelError(f"{flight.lost_packets} packets were lost or sent again, but only one was dropped")
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    saws = behaviour is None or behaviour.cubic or behaviour.reno
    server = server_of(protocol)
    segment_bytes = server.window_segment_bytes(protocol)
    detected_s, recovered_s = flight.detected_at_s, flight.recovered_at_s
    rtt_s = recovered_s - detected_s
    before_s, after_s = (rtt_s, KEPT_ROUNDS * rtt_s) if saws else (CYCLE_S, RETURN_S)
    before = flight.most_bytes(detected_s - before_s, detected_s) / segment_bytes
    earlier = flight.most_bytes(detected_s - 2 * before_s, detected_s - before_s) / segment_bytes
    if saws and earlier < STEADY_SHARE * before:
        raise EyelevelError(
            f"the window was still growing when the packet was lost: {earlier:.0f} segments, then {before:.0f}"
        )
    after = flight.most_bytes(recovered_s, recovered_s + after_s) / segment_bytes
    if saws:
        windows_bytes = [entry.window_bytes for entry in account if entry.at_s <= detected_s]
        aims_bytes = [entry.threshold_bytes for entry in account if entry.at_s <= recovered_s]
        unused = UNUSED_SHARE * before * segment_bytes
        _check_use(before * segment_bytes, windows_bytes, unused, "when the packet was lost")
        if server.fills_window_after_loss:
            _check_use(after * segment_bytes, aims_bytes, unused, "after the recovery")
        elif account:
            after = _account_of_kept(after * segment_bytes, aims_bytes, unused) / segment_bytes
    moment_s = MOMENT_ROUNDS * rtt_s
    samples = int((flight.last_sent_at_s - recovered_s) / SAMPLE_S)
    at_s = np.arange(-int(LEAD_S / SAMPLE_S), samples + 1, dtype=np.float64) * SAMPLE_S
    # The window grows, so the most of a moment is what it was at its end.
    window = [flight.most_bytes(recovered_s + s - moment_s, recovered_s + s) / segment_bytes for s in at_s]
    windows: Numbers = np.array([np.nan, *(entry.window_bytes / segment_bytes for entry in account)], np.float64)
    entries = np.searchsorted([entry.at_s for entry in account], at_s + recovered_s, side="right")
    return LossResponse(segment_bytes, before, after, rtt_s, at_s, np.array(window), windows[entries])


def _check_use(in_flight_bytes: float, account_bytes: Sequence[float | None], tolerance: float, when: str) -> None:
    """Raise EyelevelError if less was in flight than the server itself, by the last of its account, would have let."""
    window_bytes = (account_bytes[-1] if account_bytes else None) or 0
    if in_flight_bytes < window_bytes - tolerance:
        raise EyelevelError(
            f"{in_flight_bytes:.0f} bytes were in flight {when}, while {window_bytes:.0f} could have been"
        )


def _account_of_kept(in_flight_bytes: float, account_bytes: Sequence[float | None], tolerance: float) -> float:
    """The window (bytes) that the server kept by the last of its account. Raises EyelevelError if it gives none, or
    if more was in flight, so that it cannot be true."""
    window_bytes = (account_bytes[-1] if account_bytes else None) or 0
    if in_flight_bytes > window_bytes + tolerance:
        raise EyelevelError(
            f"{in_flight_bytes:.0f} bytes were in flight after the recovery, while the server's log has a window of "
            f"{window_bytes:.0f}"
        )
    return window_bytes


def judge_loss_response(protocol: Protocol, seen: LossResponse) -> list[Check]:
    """The checks of the answer to a loss that was `seen`, against the congestion control of `protocol`."""
    name = protocol.name
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    if behaviour is None:
        return [unchecked(name, KEPT, f"how {protocol.congestion_control} answers to losses is not known")]
    if behaviour.reno:
        server = server_of(protocol)
        share = server.reno_kept_share(protocol)
        if not server.fills_window_after_loss and np.isnan(seen.account).all():
            why = f"{100 * seen.kept_share:.0f}%, of which the pacing may have held back some: there is no account"
            return [
                unchecked(name, KEPT, why, 100 * share, "%"),
                unchecked(name, REGROWTH, "Reno's takes longer than the transfer"),
            ]
        return [
            within(name, KEPT, 100 * share, 100 * seen.kept_share, 100 * KEPT_TOLERANCE, "%"),
            unchecked(name, REGROWTH, "Reno's takes longer than the transfer"),
        ]
    curve = expected_curve(protocol, seen)
    if curve is None:
        least, most = behaviour.kept_share
        return [between(name, KEPT, 100 * least, 100 * seen.kept_share, 100 * most, "%")]
    earliest, latest = REGROWTH_BOUNDS
    regrown_s = seen.stretch(curve) * curve.k_s
    return [
        within(name, KEPT, 100 * curve.beta, 100 * seen.kept_share, 100 * KEPT_TOLERANCE, "%"),
        between(name, REGROWTH, earliest * curve.k_s, regrown_s, latest * curve.k_s, "s"),
    ]


def expected_curve(protocol: Protocol, seen: LossResponse) -> CubicCurve | None:
    """The expected growth of the window of `protocol` after the loss that was `seen`; None for others than Cubic."""
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    if behaviour is None or not behaviour.cubic:
        return None
    return CubicCurve(seen.before, server_of(protocol).cubic_connections(protocol), seen.rtt_s)


def _applies(protocol: Protocol, bench: Bench) -> bool:
    return not bench.is_brief or protocol.emulated_connections is not None


def _refusal(protocol: Protocol, bench: Bench) -> str | None:
    if protocol.in_kernel and protocol.congestion_control == "reno":
        return "Linux's Reno has no HyStart: its slow start ends in a full queue, which loses hundreds of packets"
    return None


VALIDATION = Validation(
    KEPT,
    "the answer to one loss of ",
    11,
    measure=lambda protocol, bench: observe_loss_response(protocol, bench.sites),
    judge=judge_loss_response,
    document=lambda protocol, seen: {LOSS_RESPONSE: seen.document(expected_curve(protocol, seen))},
    applies=_applies,
    refusal=_refusal,
)
