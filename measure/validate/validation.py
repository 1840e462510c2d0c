"""Validating networks, sites and protocols, one after another."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from base.errors import EyelevelError
from base.progress import each_shown
from dataset.checks import Check, unchecked
from measure.validate.contract import Bench, Named, Validation
from measure.validate.network import cross_traffic, hop, path, server_rtts
from measure.validate.network.server_rtts import DelayedSite
from measure.validate.protocol import largest_window, loss_response, order_of_service, settings
from measure.validate.site import write_validation_sites
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network
from tuning.protocols import Protocol

# The validations of a subject are made in this order.
OF_NETWORKS: tuple[Validation[Network, Any], ...] = (path.VALIDATION, hop.VALIDATION, cross_traffic.VALIDATION)
OF_SITES: tuple[Validation[DelayedSite, Any], ...] = (server_rtts.VALIDATION,)
OF_PROTOCOLS: tuple[Validation[Protocol, Any], ...] = (
    settings.VALIDATION,
    loss_response.VALIDATION,
    largest_window.VALIDATION,
    order_of_service.VALIDATION,
)


@dataclass(frozen=True)
class _Step:
    """A validation of one subject."""

    validation: Validation[Any, Any]
    subject: Named

    def __str__(self) -> str:
        return f"measuring {self.validation.of}{self.subject.name}"

    def checks(self, bench: Bench) -> tuple[list[Check], dict[str, Any]]:
        """The checks, and what is to be kept of what was seen. Raises EyelevelError."""
        validation, subject = self.validation, self.subject
        if why := validation.refusal(subject, bench):
            return [unchecked(subject.name, validation.check, why)], {}
        seen = validation.measure(subject, bench)
        return list(validation.judge(subject, seen)), validation.document(subject, seen)


def validate(
    networks: Iterable[Network],
    protocols: Iterable[Protocol],
    folder: Path,
    *,
    quick: bool = False,
    compared: bool = False,
    shells: str = DEFAULT_SHELLS,
    delayed: Iterable[DelayedSite] = (),
    of_protocols: Sequence[Validation[Protocol, Any]] = OF_PROTOCOLS,
) -> tuple[list[Check], dict[str, Any]]:
    """Every check of `networks`, of `protocols` and of the servers of `delayed` sites, and by their names what was
    seen; shows how far it is.

    The sites of the validation (`Bench`) are written to `folder`. A subject that cannot be measured at all is a failed
    check. Networks are those of `shells`; protocols are seen on ours, which can lose a chosen packet, by the
    validations `of_protocols`.
    """
    bench = Bench(write_validation_sites(folder), shells, quick=quick, compared=compared)
    steps = [
        *_steps(OF_NETWORKS, networks, bench),
        *_steps(OF_SITES, delayed, bench),
        *_steps(of_protocols, itertools.chain.from_iterable(map(each_spoken, protocols)), bench),
    ]
    checks: list[Check] = []
    seen: dict[str, Any] = {}
    for step in each_shown(steps, str, lambda step: step.validation.expected_s, Console(stderr=True)):
        with measurable(step.subject.name, checks):
            judged, document = step.checks(bench)
            checks += judged
            seen.setdefault(step.subject.name, {}).update(document)
    return checks, seen


def _steps(validations: Sequence[Validation[Any, Any]], subjects: Iterable[Named], bench: Bench) -> Iterator[_Step]:
    for subject in subjects:
        for validation in validations:
            if validation.applies(subject, bench):
                yield _Step(validation, subject)


def each_spoken(protocol: Protocol) -> list[Protocol]:
    """`protocol`, or the two that its servers speak, each by itself."""
    if (other := protocol.alternative_service) is None:
        return [protocol]
    alone = replace(protocol, alternative=None, discovery=None, alternative_settings=None)
    return [alone, replace(other, name=f"{protocol.name}: {other.name}")]


@contextmanager
def measurable(subject: str, checks: list[Check]) -> Iterator[None]:
    """Make an error a check of `subject` that failed, so that the checks of others are not lost."""
    try:
        yield
    except EyelevelError as error:
        checks.append(Check(subject, "measurement", "possible", str(error), "", passed=False))
