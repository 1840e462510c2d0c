"""Observations of protocols in validation, as measured on a machine with two cores."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from base.structure import unstructured
from dataset.validation import ValidationEntry, keep_entries
from tuning import protocols
from tuning.protocols import Protocol
from tuning.settings import Catalogue

KNOWN: Catalogue[Protocol] = protocols.load()
# The bytes of the first flight and of one after a pause, and the share of a round trip over which the first is spread.
FLIGHTS = {"tcp": (14_480, 14_480, 0.0), "quic": (47_496, 341_246, 0.37)}
TCP_PLUS_FLIGHTS = (46_336, 401_134, 0.47)
# The window kept after a loss; the bytes in front of an urgent response; the share of bytes against priority; turns
# among incremental and among other responses (docs/validation.md).
NUMBERS = {
    "tcp": (0.70, 296_000, 0.0, 0.0, 0.0),
    "tcp+": (0.70, 548_000, 0.33, 0.0, 0.0),
    "tcp+lowat": (0.698, 45_000, 0.0, 0.0, 0.0),
    "tcp+level": (0.698, 45_000, 0.0, 0.0, 0.0),
    "quic": (0.85, 2_500, 0.0, 0.76, 0.89),
    "quic+1con": (0.699, 51_000, 0.0, 0.0, 0.0),
}


def seen(name: str) -> dict[str, Any]:
    """The observation of the protocol `name` (`ValidationEntry.seen`), limited to the values by which protocols are
    compared."""
    protocol = KNOWN[name]
    kept, in_front_bytes, against, incremental, others = NUMBERS[name]
    usual = TCP_PLUS_FLIGHTS if name.startswith("tcp+") else FLIGHTS[protocol.transport]
    first_bytes, later_bytes, spread = usual
    return {
        "congestion_control": protocol.congestion_control,
        "request_after_s": 0.1 * protocol.round_trips_before_request + 0.008,
        "pictures_at_once": 8,
        "flights": [[[0.0, size / 2], [0.1 * spread, size / 2]] for size in (first_bytes, later_bytes)],
        "loss_response": {"before": 200.0, "after": 200 * kept},
        "order_of_service": {
            "numbers": {
                "against_priority": against,
                "turns_incremental": incremental,
                "turns_others": others,
                "in_front_bytes": in_front_bytes,
                "waited_s": in_front_bytes / 1e6,
            }
        },
    }


def entry(of: Mapping[str, Mapping[str, Any]], host: str = "here") -> ValidationEntry:
    """One validation on `host`, in which everything observed passed (`of`: protocol → observation)."""
    passed = tuple(unstructured(KNOWN[name]) for name in of)
    return ValidationEntry(
        "2026-11-22T09:00:00+0000", {"host": host}, passed, (), {name: {**s} for name, s in of.items()}
    )


def write_validation(folder: Path, names: Iterable[str]) -> None:
    """Write the `validation.json` of a campaign with these protocols into its `folder`."""
    keep_entries(folder, [entry({name: seen(name) for name in names})])
