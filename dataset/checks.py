"""One check: what was configured, what was measured, how far these may be apart."""

from dataclasses import dataclass

UNCHECKED = "not checked"

# The outcomes of a check.
SUCCEEDED, FAILED, UNSUPPORTED = "succeeded", "failed", "unsupported"


@dataclass(frozen=True)
class Check:
    """A finding about `subject` (a network or protocol). The texts have units; `passed` says whether it did not fail.

    A property whose `measured` says `UNCHECKED` cannot be checked, and is there so that nobody takes it for proven.
    """

    subject: str
    name: str
    configured: str
    measured: str
    tolerance: str
    passed: bool

    @property
    def checked(self) -> bool:
        """Whether anything was measured."""
        return not self.measured.startswith(UNCHECKED)

    @property
    def outcome(self) -> str:
        """SUCCEEDED, FAILED or UNSUPPORTED."""
        if not self.passed:
            return FAILED
        return SUCCEEDED if self.checked else UNSUPPORTED


def within(subject: str, name: str, configured: float, measured: float, tolerance: float, unit: str) -> Check:
    """Whether `measured` is at most `tolerance` from `configured`, all in `unit`."""
    return Check(
        subject,
        name,
        _quantity(configured, unit),
        _quantity(measured, unit),
        f"± {_quantity(tolerance, unit)}" if tolerance else "",
        abs(measured - configured) <= tolerance,
    )


def between(subject: str, name: str, least: float, measured: float, most: float, unit: str) -> Check:
    """Whether `measured` is between `least` and `most`, all in `unit`."""
    bounds = f"{_quantity(least, '')}to {_quantity(most, unit)}"
    return Check(subject, name, bounds, _quantity(measured, unit), "", least <= measured <= most)


def same(subject: str, name: str, configured: object, measured: object) -> Check:
    """Whether `measured` is exactly what was configured."""
    return Check(subject, name, str(configured), str(measured), "", configured == measured)


def unchecked(subject: str, name: str, why: str, configured: float | None = None, unit: str = "") -> Check:
    """A property that cannot be measured, and `why`; `configured` if that is a number."""
    should = "" if configured is None else _quantity(configured, unit)
    return Check(subject, name, should, f"{UNCHECKED}: {why}", "", passed=True)


def _quantity(value: float, unit: str) -> str:
    """Four digits, and never a power of ten."""
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"
