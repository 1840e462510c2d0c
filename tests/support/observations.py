"""Observations of protocols as a validation makes and judges them."""

from collections.abc import Mapping
from dataclasses import replace

from base.errors import EyelevelError
from measure.validate.protocol.settings import ProtocolObservation, judge_protocol, observe_protocol
from record.site import Site
from tuning.protocols import Protocol

# When other tests run at the same time, a browser or server may wait for the processor at any moment, for longer than
# a round trip. Then requests are late or apart, a flight ends early, or the link stays empty. A protocol that fails as
# itself is observed again, up to this often in all.
ATTEMPTS = 3


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
                if not _failing(protocol, self._known[settings]):
                    break
        return self._known[settings]

    def failures(self, claimed: Protocol, applied: Protocol) -> set[str]:
        """The names of the checks that fail when the protocol `applied` is claimed to be `claimed`."""
        return _failing(claimed, self.of(applied))


def _failing(claimed: Protocol, seen: ProtocolObservation) -> set[str]:
    try:
        failing = {check.name for check in judge_protocol(claimed, seen) if not check.passed}
    except EyelevelError as error:  # a server that waited for a second seems to have sent an object more
        return {str(error)}
    # BBR's first window is slightly larger than configured.
    return failing - ({"initial window"} if seen.congestion_control == "bbr" else set[str]())
