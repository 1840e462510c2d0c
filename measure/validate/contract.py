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
    """A validation's own `sites`, by their names, and the `shells` that emulate its networks.

    If this is to be `quick`, fewer losses of a network are looked at, and the answer to one loss and the order of
    service only of protocols that are `compared`, or that have a setting for it.
    """

    sites: Mapping[str, Site]
    shells: str = DEFAULT_SHELLS
    quick: bool = False
    compared: bool = False

    @property
    def is_brief(self) -> bool:
        """Whether only settings of protocols are looked at, not what a comparison depends on besides."""
        return self.quick and not self.compared


@dataclass(frozen=True)
class Validation(Generic[Subject, Seen]):
    """One measurement of each subject to which it `applies`, and its judgement.

    `of` says what is measured, before the subject's name. `expected_s`: about how long that takes on two cores; only
    the relation to other validations matters. `refusal` is why a subject cannot be measured, or None: the check `check`
    is unchecked then. `measure` raises EyelevelError. `document` is what is kept of the measurement, as JSON has it.
    """

    check: str
    of: str
    expected_s: float
    measure: Callable[[Subject, Bench], Seen]
    judge: Callable[[Subject, Seen], Iterable[Check]]
    document: Callable[[Subject, Seen], dict[str, Any]] = lambda subject, seen: {}
    applies: Callable[[Subject, Bench], bool] = lambda subject, bench: True
    refusal: Callable[[Subject, Bench], str | None] = lambda subject, bench: None
