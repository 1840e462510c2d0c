"""Protocols as a validation observes and judges them."""

from collections.abc import Mapping
from dataclasses import replace

from measure.validate.protocol.settings import ProtocolObservation, judge_protocol, observe_protocol
from record.site import Site
from tuning.protocols import Protocol

# Beside other tests a load's first request can come late, never early, and a server that waits for the processor can
# send less than the link carries, never more: such loads are made again, this often in all.
ATTEMPTS = 3
SUBJECT_TO_THE_MACHINE = {"round trips before the first request", "share of a link with 8% loss"}


class Observations:
    """Observations of protocols in true loads; protocols that differ by their name alone are loaded once."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._known: dict[str, ProtocolObservation] = {}

    def of(self, protocol: Protocol) -> ProtocolObservation:
        settings = repr(replace(protocol, name=""))
        if settings not in self._known:
            for _ in range(ATTEMPTS):
                self._known[settings] = observe_protocol(protocol, self._sites)
                if not SUBJECT_TO_THE_MACHINE & _failing(protocol, self._known[settings]):
                    break
        return self._known[settings]

    def failures(self, claimed: Protocol, applied: Protocol) -> set[str]:
        """The names of the checks that fail when `claimed` is what a protocol is said to be that is `applied`."""
        failing = _failing(claimed, self.of(applied))
        # BBR's first window is somewhat more than what it is set to.
        return failing - ({"initial window"} if applied.congestion_control == "bbr" else set[str]())


def _failing(claimed: Protocol, seen: ProtocolObservation) -> set[str]:
    return {check.name for check in judge_protocol(claimed, seen) if not check.passed}
