"""Validates networks, sites and protocols, one after another."""

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
        """The checks, and the part of the measurement that is stored. Raises EyelevelError."""
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
    """All checks of `networks`, `protocols` and the servers of `delayed` sites, and subject name → the measurement.
    Shows its progress.

    The validation's own sites (`Bench`) are written to `folder`. A subject that cannot be measured at all becomes a
    failed check. Networks are emulated by `shells`. Protocols are measured by the validations `of_protocols`, on our
    own shells, which can lose a chosen packet.
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
    """Only `protocol`, or, if its servers also speak an alternative, each of the two protocols by itself."""
    if (other := protocol.alternative_service) is None:
        return [protocol]
    alone = replace(protocol, alternative=None, discovery=None, alternative_settings=None)
    return [alone, replace(other, name=f"{protocol.name}: {other.name}")]


@contextmanager
def measurable(subject: str, checks: list[Check]) -> Iterator[None]:
    """Turn an error into a failed check of `subject`, so that the checks of others are not lost."""
    try:
        yield
    except EyelevelError as error:
        checks.append(Check(subject, "measurement", "possible", str(error), "", passed=False))
