"""Observations of protocols as a validation makes and judges them."""

from collections.abc import Mapping
from dataclasses import replace

from base.errors import EyelevelError
from measure.validate.protocol.settings import ProtocolObservation, judge_protocol, observe_protocol
from record.site import Site
from tuning.protocols import Protocol

# When other tests run at the same time, a browser or server may wait for the processor at any moment, for longer than
# a round trip. Then requests are late or apart, a flight ends early, the link stays empty, or a capture lacks what is
# observed. A protocol that fails as itself is observed again, up to this often in all, if only checks fail whose name
# has one of these words: lateness cannot change the others.
ATTEMPTS = 3
OF_TIMES = {"window", "spread", "share", "pictures", "round trips"}


class Observations:
    """Observations of protocols in real loads; protocols that differ only by name are loaded once."""

    def __init__(self, sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._known: dict[str, ProtocolObservation] = {}

    def of(self, protocol: Protocol) -> ProtocolObservation:
        settings = repr(replace(protocol, name=""))
        if settings not in self._known:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._known[settings] = observe_protocol(protocol, self._sites)
                    failing = _failing(protocol, self._known[settings])
                except EyelevelError:
                    if attempt == ATTEMPTS:
                        raise
                    continue
                if not failing or not all(any(word in name for word in OF_TIMES) for name in failing):
                    break
        return self._known[settings]

    def failures(self, claimed: Protocol, applied: Protocol) -> set[str]:
        """The names of the checks that fail when the protocol `applied` is claimed to be `claimed`."""
        return _failing(claimed, self.of(applied))


def _failing(claimed: Protocol, seen: ProtocolObservation) -> set[str]:
    failing = {check.name for check in judge_protocol(claimed, seen) if not check.passed}
    # BBR's first window is larger than is accepted where another congestion control is claimed.
    return failing - ({"initial window"} if seen.congestion_control == "bbr" else set[str]())
