"""One check: the configured value, the measured value, and the tolerance between both."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from base.words import plural

UNCHECKED = "not checked"
# A reason that follows a value, as in `43% (the kernel's order is settled)`.
SEEN = re.compile(r"\d.*? \((.+)\)")

# The outcomes of a check.
SUCCEEDED, FAILED, UNSUPPORTED = "succeeded", "failed", "unsupported"


@dataclass(frozen=True)
class Check:
    """A finding about `subject` (a network or protocol). The texts have units; `passed` is False only if the check
    failed.

    If `measured` begins with `UNCHECKED`, the property cannot be checked, and `passed` is True. Such a check is listed
    so that nobody takes the property for proven.
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


def outcomes_in_words(outcomes: Iterable[tuple[str, bool]]) -> str:
    """How many checks passed, failed, and do not apply, and why they do not; `outcomes` are each check's `measured` and
    `passed`."""
    checked, unchecked_because, failed = 0, list[str](), 0
    for measured, passed in outcomes:
        if measured.startswith(UNCHECKED):
            unchecked_because.append(SEEN.sub(r"\1", measured.removeprefix(f"{UNCHECKED}: ")))
        else:
            checked, failed = checked + 1, failed + (not passed)
    texts = [f"{plural('check', checked - failed)} passed"]
    texts += [f"{failed} failed"] if failed else []
    if number := len(unchecked_because):
        why = "; ".join(dict.fromkeys(unchecked_because))
        texts.append(f"{number} {'does' if number == 1 else 'do'} not apply here ({why})")
    return ", ".join(texts)


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
    """Whether `measured` lies between `least` and `most`, all in `unit`."""
    bounds = f"{_quantity(least, '')}to {_quantity(most, unit)}"
    return Check(subject, name, bounds, _quantity(measured, unit), "", least <= measured <= most)


def same(subject: str, name: str, configured: object, measured: object) -> Check:
    """Whether `measured` equals the configured value exactly."""
    return Check(subject, name, str(configured), str(measured), "", configured == measured)


def unchecked(subject: str, name: str, why: str, configured: float | None = None, unit: str = "") -> Check:
    """A property that cannot be measured, and the reason `why`; `configured` is its value if that is a number."""
    should = "" if configured is None else _quantity(configured, unit)
    return Check(subject, name, should, f"{UNCHECKED}: {why}", "", passed=True)


def _quantity(value: float, unit: str) -> str:
    """A number with its unit: an integer from 1000 on (never in exponent notation), else with three digits."""
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"
