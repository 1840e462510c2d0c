"""Observations of protocols as a validation makes and judges them."""

from collections.abc import Mapping
from dataclasses import replace

from measure.validate.protocol.settings import ProtocolObservation, judge_protocol, observe_protocol
from record.site import Site
from tuning.protocols import Protocol

# When other tests run at the same time, a load's first request can be late, never early, and a server that waits for
# the processor can send less than the link carries, never more. Such loads are repeated, up to this many in all.
ATTEMPTS = 3
SUBJECT_TO_THE_MACHINE = {"round trips before the first request", "share of a link with 8% loss"}


class Observations:
    """Observations of protocols in real loads; protocols that differ only by name are loaded once."""

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
        """The names of the checks that fail when the protocol `applied` is claimed to be `claimed`."""
        failing = _failing(claimed, self.of(applied))
        # BBR's first window is slightly larger than configured.
        return failing - ({"initial window"} if applied.congestion_control == "bbr" else set[str]())


def _failing(claimed: Protocol, seen: ProtocolObservation) -> set[str]:
    return {check.name for check in judge_protocol(claimed, seen) if not check.passed}
