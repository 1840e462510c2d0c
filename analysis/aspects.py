"""Aspects in which protocols are compared besides their transports: the measured value and the setting of each.

The measured values come from the documents that validation wrote (`ValidationEntry.seen`).
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from base.errors import EyelevelError
from base.structure import structured
from dataset import observations
from dataset.observations import ANSWER_TO_LOSS, ORDER, PICTURES
from dataset.table import CampaignDocument
from tuning.protocols import LARGEST_MSS_BYTES, Protocol

Seen = Mapping[str, Any]
# The server choices of one protocol: name → value (`CampaignDocument.server_choices`).
Choices = Mapping[str, str]
# Protocol → decision → the decision's value.
Decisions = Mapping[str, Mapping[str, str]]
# The tolerance for the difference between two windows; and the size above which a flight has more than ten packets.
# Both allow for a sender that sends one packet more than its window.
WINDOW_TOLERANCE_BYTES = 2 * observations.FLIGHT_TOLERANCE_PACKETS * LARGEST_MSS_BYTES
BURST_BYTES = (observations.BURST_PACKETS + observations.FLIGHT_TOLERANCE_PACKETS) * LARGEST_MSS_BYTES
# A window that starts anew after a pause is a fraction of one that is kept, and kept windows vary by chance. So windows
# within this factor count as alike.
GROWN = 2.0
# The aspect, and the decision, in which the transports themselves differ.
ROUND_TRIPS = "round trips before the first request"
KNOWN_BEFORE = "whether the browser knows beforehand what servers speak"

# Decision → its value for a protocol and its server's choices; empty if the server's choice is unknown. Backup
# connections are those of Chromium.
DECISIONS: Mapping[str, Callable[[Protocol, Choices], str]] = {
    "congestion control": lambda protocol, _: protocol.congestion_control,
    ANSWER_TO_LOSS: lambda _, choices: choices.get(ANSWER_TO_LOSS, ""),
    ORDER: lambda _, choices: choices.get(ORDER, ""),
    "initial window": lambda protocol, _: f"{protocol.initial_window_packets} packets",
    "pacing": lambda protocol, _: "on" if protocol.pacing else "off",
    "window after a pause": lambda protocol, _: "the initial one" if protocol.restarts_after_idle else "kept",
    KNOWN_BEFORE: lambda protocol, _: "yes" if protocol.browser_knows_servers else "no",
    "backup connections of the browser": lambda protocol, _: (
        "after 250 ms without an answer" if protocol.in_kernel and protocol.backup_connections is not False else "none"
    ),
    ROUND_TRIPS: lambda protocol, _: f"{protocol.round_trips_before_request}",
}


@dataclass(frozen=True)
class Aspect:
    """One thing in which protocols may differ, and which validation measures.

    `measured`: takes the document that validation wrote on a protocol, and returns the aspect's value; None if not
    measured.
    `decision`: the decision (of DECISIONS) that determines the aspect; reports show it if the aspect was not measured.
    Empty if no setting determines the aspect.
    `text`: the value in words.
    `differ`: whether two values are further apart than the values of two loads of one protocol.
    """

    name: str
    measured: Callable[[Seen], float | str | None]
    decision: str = ""
    text: Callable[[Any], str] = str
    differ: Callable[[Any, Any], bool] = operator.ne


def _further_than(tolerance: float) -> Callable[[float, float], bool]:
    return lambda one, other: abs(one - other) > tolerance


def _on_two_sides(bound: float) -> Callable[[float, float], bool]:
    return lambda one, other: (one > bound) != (other > bound)


def _in_order(key: str) -> Callable[[Seen], float | None]:
    return lambda seen: seen.get(observations.ORDER_OF_SERVICE, {}).get("numbers", {}).get(key)


def _kept(seen: Seen) -> float | None:
    response = seen.get(observations.LOSS_RESPONSE)
    return response["after"] / response["before"] if response else None


def _flight(number: int) -> Callable[[Seen], list[list[float]] | None]:
    return lambda seen: (seen.get("flights") or [None, None])[number]


def _flight_bytes(number: int) -> Callable[[Seen], float | None]:
    return lambda seen: sum(size for _, size in flight) if (flight := _flight(number)(seen)) else None


def _spread(seen: Seen) -> float | None:
    """The share of a round trip over which a flight was sent: the first flight, or the second if the first was small
    enough to be sent in one burst."""
    first_bytes = _flight_bytes(0)(seen)
    if first_bytes is None or not (flight := _flight(int(first_bytes <= BURST_BYTES))(seen)):
        return None
    return (flight[-1][0] - flight[0][0]) / (observations.CLEAR_RTT_MS / 1e3)


def _round_trips(seen: Seen) -> float | None:
    request_after_s = seen.get("request_after_s")
    return None if request_after_s is None else request_after_s / (observations.CLEAR_RTT_MS / 1e3)


def _kilobytes(value: float) -> str:
    return f"{value / 1e3:,.0f} kB"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


_TURNING = _on_two_sides((observations.ONE_AFTER_ANOTHER[1] + observations.TURNS[0]) / 2)
BACK_OFF = Aspect(
    "window kept after one loss", _kept, ANSWER_TO_LOSS, "{:.2f}".format, _further_than(2 * observations.KEPT_TOLERANCE)
)
ASPECTS = (
    Aspect("congestion control", lambda seen: seen.get("congestion_control"), "congestion control"),
    BACK_OFF,
    Aspect(
        "bytes in front of an urgent response",
        _in_order("in_front_bytes"),
        ORDER,
        _kilobytes,
        # The tolerance is the number of bytes that the link carries while a server begins its answer.
        _further_than(observations.ANSWER_BYTES),
    ),
    Aspect(
        "bytes sent against priority",
        _in_order("against_priority"),
        ORDER,
        _percent,
        _further_than(observations.MOST_AGAINST_PRIORITY),
    ),
    Aspect("incremental responses sent in turns", _in_order("turns_incremental"), ORDER, _percent, _TURNING),
    Aspect("other responses sent in turns", _in_order("turns_others"), ORDER, _percent, _TURNING),
    Aspect("initial window", _flight_bytes(0), "initial window", _kilobytes, _further_than(WINDOW_TOLERANCE_BYTES)),
    Aspect(
        "pacing of a flight",
        _spread,
        "pacing",
        lambda share: f"over {_percent(share)} of a round trip",
        _on_two_sides((observations.PACED_SHARE + observations.UNPACED_SHARE) / 2),
    ),
    Aspect(
        "window after a pause",
        _flight_bytes(1),
        "window after a pause",
        _kilobytes,
        lambda one, other: max(one, other) > GROWN * min(one, other),
    ),
    # This aspect is measured over an established connection. No load of a validation shows the requests to a server
    # that is not known yet.
    Aspect("pictures asked for at once", lambda seen: seen.get("pictures_at_once"), text=f"{{}} of {PICTURES}".format),
    Aspect(ROUND_TRIPS, _round_trips, ROUND_TRIPS, "{:.1f}".format, _further_than(observations.REQUEST_TOLERANCE_RTT)),
)
# The keys of a protocol that no aspect covers, and in which protocols of one transport may differ.
FURTHER_KEYS = (
    "server", "mss_bytes", "tls_group", "fast_open", "connection_options", "server_sysctls", "client_sysctls",
)  # fmt: skip


def protocol_of(document: Mapping[str, Any]) -> Protocol | None:
    """The protocol that `document`, a part of `campaign.json`, describes; None if this version cannot read it."""
    try:
        return structured(document, Protocol, "")
    except EyelevelError:
        return None


def decisions(document: CampaignDocument) -> Decisions:
    """Protocol → decision → the decision's value, where known. Leaves out protocols that this version cannot read."""
    decided = {}
    for name, settings in document.settings.protocols.items():
        if protocol := protocol_of(settings):
            choices = document.server_choices.get(name, {})
            texts = {decision: text_of(protocol, choices) for decision, text_of in DECISIONS.items()}
            decided[name] = {decision: text for decision, text in texts.items() if text}
    return decided
