"""Aspects in which protocols are compared besides their transports: the measured value and the setting of each.

The measured values come from the documents that validation wrote (`ValidationEntry.seen`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from base.errors import EyelevelError
from base.structure import structured
from dataset.observations import (
    ANSWER_BYTES,
    ANSWER_TO_LOSS,
    BURST_PACKETS,
    CLEAR_RTT_MS,
    FLIGHT_TOLERANCE_PACKETS,
    KEPT_TOLERANCE,
    LOSS_RESPONSE,
    MOST_AGAINST_PRIORITY,
    ONE_AFTER_ANOTHER,
    ORDER,
    ORDER_OF_SERVICE,
    PACED_SHARE,
    PICTURES,
    REQUEST_TOLERANCE_RTT,
    TURNS,
    UNPACED_SHARE,
)
from dataset.table import CampaignDocument
from tuning.protocols import LARGEST_MSS_BYTES, Protocol

Seen = Mapping[str, Any]
Value = float | str
# The server choices of one protocol: name → value (`CampaignDocument.server_choices`).
Choices = Mapping[str, str]
# Protocol → decision → the decision's value.
Decisions = Mapping[str, Mapping[str, str]]
# The tolerance for the difference between two windows; and the size above which a flight has more than ten packets.
# Both allow for a sender that sends one packet more than its window.
WINDOW_TOLERANCE_BYTES = 2 * FLIGHT_TOLERANCE_PACKETS * LARGEST_MSS_BYTES
BURST_BYTES = (BURST_PACKETS + FLIGHT_TOLERANCE_PACKETS) * LARGEST_MSS_BYTES
# A window that starts anew after a pause is a fraction of one that is kept, and kept windows vary by chance. So windows
# within this factor count as alike.
GROWN = 2.0
# When Chromium opens backup connections (`backup_connections` of a protocol).
BACKUP = "after 250 ms without an answer"


@dataclass(frozen=True)
class Aspect:
    """One thing in which protocols may differ.

    `measured`: takes the document that validation wrote on a protocol, and returns the aspect's value; None if not
    measured.
    `text`: this value in words.
    `differ`: whether two values are further apart than the values of two loads of one protocol.
    `decision`: the name of the setting that determines the aspect; reports show it if the aspect was not measured.
    `setting`: this setting's value for a protocol and its server's choices.
    `decision` and `setting` are empty if no setting determines the aspect, or if the server's choice is unknown.
    `of_transport`: whether the transports themselves differ in this aspect.
    """

    name: str
    measured: Callable[[Seen], Value | None]
    text: Callable[[Any], str]
    differ: Callable[[Any, Any], bool]
    decision: str = ""
    setting: Callable[[Protocol, Choices], str] = lambda protocol, choices: ""
    of_transport: bool = False


def _further_than(tolerance: float) -> Callable[[float, float], bool]:
    return lambda one, other: abs(one - other) > tolerance


def _unequal(one: Value, other: Value) -> bool:
    return one != other


def _on_two_sides(bound: float) -> Callable[[float, float], bool]:
    return lambda one, other: (one > bound) != (other > bound)


def _in_order(key: str) -> Callable[[Seen], float | None]:
    return lambda seen: seen.get(ORDER_OF_SERVICE, {}).get("numbers", {}).get(key)


def _kept(seen: Seen) -> float | None:
    response = seen.get(LOSS_RESPONSE)
    return response["after"] / response["before"] if response else None


def _server_choice(decision: str) -> tuple[str, Callable[[Protocol, Choices], str]]:
    return decision, lambda protocol, choices: choices.get(decision, "")


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
    return (flight[-1][0] - flight[0][0]) / (CLEAR_RTT_MS / 1e3)


def _round_trips(seen: Seen) -> float | None:
    request_after_s = seen.get("request_after_s")
    return None if request_after_s is None else request_after_s / (CLEAR_RTT_MS / 1e3)


def _kilobytes(value: float) -> str:
    return f"{value / 1e3:,.0f} kB"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


_SCHEDULER = _server_choice(ORDER)
_TURNING = _on_two_sides((ONE_AFTER_ANOTHER[1] + TURNS[0]) / 2)
BACK_OFF = Aspect(
    "window kept after one loss",
    _kept,
    lambda share: f"{share:.2f}",
    _further_than(2 * KEPT_TOLERANCE),
    *_server_choice(ANSWER_TO_LOSS),
)
ASPECTS = (
    Aspect(
        "congestion control",
        lambda seen: seen.get("congestion_control"),
        str,
        _unequal,
        "congestion control",
        lambda protocol, choices: protocol.congestion_control,
    ),
    BACK_OFF,
    Aspect(
        "bytes in front of an urgent response",
        _in_order("in_front_bytes"),
        _kilobytes,
        # The tolerance is the number of bytes that the link carries while a server begins its answer.
        _further_than(ANSWER_BYTES),
        *_SCHEDULER,
    ),
    Aspect(
        "bytes sent against priority",
        _in_order("against_priority"),
        _percent,
        _further_than(MOST_AGAINST_PRIORITY),
        *_SCHEDULER,
    ),
    Aspect(
        "incremental responses sent in turns",
        _in_order("turns_incremental"),
        _percent,
        _TURNING,
        *_SCHEDULER,
    ),
    Aspect("other responses sent in turns", _in_order("turns_others"), _percent, _TURNING, *_SCHEDULER),
    Aspect(
        "initial window",
        _flight_bytes(0),
        _kilobytes,
        _further_than(WINDOW_TOLERANCE_BYTES),
        "initial window",
        lambda protocol, choices: f"{protocol.initial_window_packets} packets",
    ),
    Aspect(
        "pacing of a flight",
        _spread,
        lambda share: f"over {_percent(share)} of a round trip",
        _on_two_sides((PACED_SHARE + UNPACED_SHARE) / 2),
        "pacing",
        lambda protocol, choices: "on" if protocol.pacing else "off",
    ),
    Aspect(
        "window after a pause",
        _flight_bytes(1),
        _kilobytes,
        lambda one, other: max(one, other) > GROWN * min(one, other),
        "window after a pause",
        lambda protocol, choices: "the initial one" if protocol.restarts_after_idle else "kept",
    ),
    # This aspect is measured over an established connection. No load of a validation shows the requests to a server
    # that is not known yet.
    Aspect(
        "pictures asked for at once",
        lambda seen: seen.get("pictures_at_once"),
        lambda pictures: f"{pictures} of {PICTURES}",
        _unequal,
    ),
    Aspect(
        "servers known before",
        lambda seen: None,
        str,
        _unequal,
        "whether the browser knows beforehand what servers speak",
        lambda protocol, choices: "yes" if protocol.browser_knows_servers else "no",
    ),
    Aspect(
        "backup connections",
        lambda seen: None,
        str,
        _unequal,
        "backup connections of the browser",
        lambda protocol, choices: BACKUP if protocol.in_kernel and protocol.backup_connections is not False else "none",
    ),
    Aspect(
        "round trips before the first request",
        _round_trips,
        lambda round_trips: f"{round_trips:.1f}",
        _further_than(REQUEST_TOLERANCE_RTT),
        "round trips before the first request",
        lambda protocol, choices: f"{protocol.round_trips_before_request}",
        of_transport=True,
    ),
)
# The keys of a protocol that no aspect covers, and in which protocols of one transport may differ.
FURTHER_KEYS = (
    "server",
    "mss_bytes",
    "tls_group",
    "fast_open",
    "connection_options",
    "server_sysctls",
    "client_sysctls",
)


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
            texts = {aspect.decision: aspect.setting(protocol, choices) for aspect in ASPECTS}
            decided[name] = {decision: text for decision, text in texts.items() if text}
    return decided
