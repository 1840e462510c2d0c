"""The contract of validations: what is measured of each network, site or protocol, and how it is judged."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from dataset.checks import Check
from record.site import Site
from tuning.defaults import DEFAULT_SHELLS


class Named(Protocol):
    """A network, a site or a protocol."""

    @property
    def name(self) -> str: ...


Subject = TypeVar("Subject", bound=Named)
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Bench:
    """A validation's own `sites`, by name, and the `shells` that emulate its networks.

    If `quick`, fewer losses of a network are counted. The answer to one loss and the order of service are then measured
    only if protocols are `compared`, or for a protocol that has a setting for it.
    """

    sites: Mapping[str, Site]
    shells: str = DEFAULT_SHELLS
    quick: bool = False
    compared: bool = False

    @property
    def is_brief(self) -> bool:
        """Whether only the protocols' settings are checked, without the other properties on which a comparison
        depends."""
        return self.quick and not self.compared


@dataclass(frozen=True)
class Validation(Generic[Subject, Seen]):
    """One measurement of each subject to which it `applies`, and its judgement.

    `of` names what is measured; the subject's name follows it in messages. `expected_s` is roughly the time on two
    cores; only its relation to other validations matters. `refusal` returns why a subject cannot be measured, or None;
    with a reason, the check `check` is reported as unchecked. `measure` raises EyelevelError. `document` returns the
    part of the measurement that is stored, as JSON.
    """

    check: str
    of: str
    expected_s: float
    measure: Callable[[Subject, Bench], Seen]
    judge: Callable[[Subject, Seen], Iterable[Check]]
    document: Callable[[Subject, Seen], dict[str, Any]] = lambda subject, seen: {}
    applies: Callable[[Subject, Bench], bool] = lambda subject, bench: True
    refusal: Callable[[Subject, Bench], str | None] = lambda subject, bench: None
