"""How a sender answers exactly one loss: the share of its window that it keeps, and how the window grows afterwards.

The window is read from the wire: a sender that always has data to send keeps as much in flight as its congestion window
permits, so the most in flight within a short time is the window. The server's own account of its window is stored for
display, and shows whether the window was in use. Checks do not rely on it, with one exception: if a server's pacing
leaves less in flight than its window after a loss, the kept window is taken from its account. Even then, no more may be
in flight on the wire than that window.

If there was no loss, or more than one, if the window was not steady before it, or was not in use after it, nothing can
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
from measure.validate.protocol.congestion_controls import BEHAVIOURS, not_modelled
from measure.validate.protocol.cubic import CubicCurve, Numbers
from measure.validate.protocol.flight import Flight, read_flight
from measure.validate.protocol.server_account import ServerWindow, server_account
from measure.validate.protocol.settings import BULK_LOADING, KEYS, SEED, ObservationMethod
from measure.validate.site import LOSS_PAGE
from record.site import Site
from servers.registry import server_of
from tuning.networks import Network
from tuning.protocols import Protocol

# One packet in the middle of the transfer is dropped on its way to the browser; the queue has room for all others. Slow
# start ends without a loss when the queue begins to grow (HyStart), at two to five times the bandwidth-delay product of
# 52 packets, after some 600 packets. The queue that BBR's start filled has drained after some 1000 packets. So when the
# packet is lost, the window is steady, large (Cubic's has 150 to 250 packets) and in use; K (4 to 6 s) later, it is as
# large as before. A busy machine can keep up with this rate.
DROPPED_PACKET = 1600
ONE_LOSS = Network(
    "one loss", min_rtt_ms=60, up_mbps=10, down_mbps=10, queue_ms=600, drop_down_packets=(DROPPED_PACKET,)
)
# On a busy machine, loads are often not usable.
TRIES = 4

# While the window grows, it is taken as the maximum in flight within this share of a round trip, so that a server which
# had to wait for the processor does not seem to have a small window.
MOMENT_ROUNDS = 1 / 4
# The same for the window that was kept: a smaller share, since the window grows by a thirtieth in each round trip.
KEPT_ROUNDS = 1 / 16
# The spans before and after the loss in which the maximum in flight is taken for windows that vary by themselves: BBR
# sends more in one of eight round trips, BBRv2 less for up to 0.7 s.
CYCLE_S, RETURN_S = 0.5, 1.0
# The window was still growing if a round trip before the loss it was less than this share of its size at the loss.
STEADY_SHARE = 0.9
# At the two moments that are compared (the loss and the end of the recovery), less may be in flight than the server
# permits, but only by this share of the window before the loss. A larger gap means that the server or the browser had
# to wait for the processor just then.
UNUSED_SHARE = 0.01
# The growth must have been observed for this share of K.
LEAST_K = 0.6

KEPT = "window kept after a loss"
REGROWTH = "time to grow back after a loss"
# The accepted times in multiples of K. Linux is up to an eighth later: it approaches its target only with
# acknowledgements, which the queue delays. quiche is a tenth earlier, since it uses the window a round trip later. It
# is even earlier after waits for the processor: after each, it starts the rest of its curve anew at that window.
REGROWTH_BOUNDS = (0.5, 1.25)
# The factors that are tried for the time axis of the curve.
STRETCHES = np.geomspace(0.25, 4, 801)
# The sampling interval of the window, and how long before the end of the recovery samples begin, for figures.
SAMPLE_S, LEAD_S = 0.05, 1.0


@dataclass(frozen=True)
class LossResponse:
    """Observations of the answer to one loss. Windows are in segments of the server (`segment_bytes`).

    `before`: the window when the server could first detect the loss; `after`: the window at the end of the recovery.
    `rtt_s`: the time between these two moments, which is one round trip. `at_s`: times since the end of the recovery.
    At each of these times, `window` is the most in flight shortly before, and `account` is the window that the server
    itself reports (NaN without a report).
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
        """The factor by which the window grew more slowly than `curve`, by the best fit.

        The fit minimises absolute deviations, not squares, since a busy machine makes some samples too small.
        """
        grows = (self.at_s > 0) & (self.at_s < curve.k_s)
        at_s, window = self.at_s[grows], self.window[grows]
        if not len(at_s) or at_s[-1] < LEAST_K * curve.k_s:
            raise EyelevelError(f"the transfer ended before the window could grow back, in {curve.k_s:.1f} s")
        # Beyond the window before the loss, another part of the curve begins, so the fit ends there.
        regrowths = (np.minimum(curve.window(at_s / stretch), curve.before) for stretch in STRETCHES)
        deviations = [np.abs(window - regrowth).sum() for regrowth in regrowths]
        return float(STRETCHES[int(np.argmin(deviations))])

    def document(self, curve: CubicCurve | None) -> dict[str, Any]:
        """These observations as JSON, for figures and readers, with the expected window if known."""
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
    """Load the validation page over `protocol` in the browser on `network`, which drops one packet. Raises
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
    """The answer to the loss in `flight`; `account` is the server's, in order of time. Raises EyelevelError if nothing
    can be judged."""
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
    # The window grows, so the maximum over the last moment is its value at the end.
    window = [flight.most_bytes(recovered_s + s - moment_s, recovered_s + s) / segment_bytes for s in at_s]
    windows: Numbers = np.array([np.nan, *(entry.window_bytes / segment_bytes for entry in account)], np.float64)
    entries = np.searchsorted([entry.at_s for entry in account], at_s + recovered_s, side="right")
    return LossResponse(segment_bytes, before, after, rtt_s, at_s, np.array(window), windows[entries])


def _check_use(in_flight_bytes: float, account_bytes: Sequence[float | None], tolerance: float, when: str) -> None:
    """Raises EyelevelError if less was in flight than the last entry of the server's account permitted."""
    window_bytes = (account_bytes[-1] if account_bytes else None) or 0
    if in_flight_bytes < window_bytes - tolerance:
        raise EyelevelError(
            f"{in_flight_bytes:.0f} bytes were in flight {when}, while {window_bytes:.0f} could have been"
        )


def _account_of_kept(in_flight_bytes: float, account_bytes: Sequence[float | None], tolerance: float) -> float:
    """The window (bytes) that the server kept, by the last entry of its account. Raises EyelevelError if more was in
    flight, which contradicts the account, or if the account is empty."""
    window_bytes = (account_bytes[-1] if account_bytes else None) or 0
    if in_flight_bytes > window_bytes + tolerance:
        raise EyelevelError(
            f"{in_flight_bytes:.0f} bytes were in flight after the recovery, while the server's log has a window of "
            f"{window_bytes:.0f}"
        )
    return window_bytes


def judge_loss_response(protocol: Protocol, seen: LossResponse) -> list[Check]:
    """Compare the observed answer to a loss with the congestion control of `protocol`."""
    name = protocol.name
    behaviour = BEHAVIOURS.get(protocol.congestion_control)
    if behaviour is None:
        return [unchecked(name, KEPT, not_modelled(protocol.congestion_control, f"{100 * seen.kept_share:.0f}%"))]
    server = server_of(protocol)
    held_back = not server.fills_window_after_loss and np.isnan(seen.account).all()
    why = f"{100 * seen.kept_share:.0f}%, of which the pacing may have held back some: there is no account"
    if behaviour.reno:
        share = server.reno_kept_share(protocol)
        if held_back:
            return [
                unchecked(name, KEPT, why, 100 * share, "%"),
                unchecked(name, REGROWTH, "Reno's takes longer than the transfer"),
            ]
        return [
            within(name, KEPT, 100 * share, 100 * seen.kept_share, 100 * KEPT_TOLERANCE, "%"),
            unchecked(name, REGROWTH, "Reno's takes longer than the transfer"),
        ]
    if held_back:
        return [unchecked(name, KEPT, why), unchecked(name, REGROWTH, why)]
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
    """The expected growth of the window of `protocol` after the loss; None for congestion controls other than Cubic."""
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
