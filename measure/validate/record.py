"""The validation of a campaign's settings: measures those that have not passed yet, and stores the results
(`dataset.validation`)."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from base.clock import now_iso
from base.errors import EyelevelError
from base.structure import unstructured
from base.words import plural
from dataset.checks import Check
from dataset.validation import VALIDATION, ValidationEntry, keep_entries, kept_entries
from measure.host.machine import machine, versions
from measure.validate.network.server_rtts import DelayedSite
from measure.validate.validation import each_spoken, validate
from replay.hops.registry import hop_programs
from servers.registry import programs_of
from tuning.defaults import DEFAULT_SHELLS
from tuning.networks import Network
from tuning.protocols import TRANSPORTS, Protocol

# A validation of networks uses these servers.
DEFAULT_SERVERS = tuple(transport.default_server for transport in TRANSPORTS.values())


@dataclass(frozen=True)
class Machine:
    """The `facts` of a machine, the `versions` of its programs, and the function that measures settings there."""

    facts: Callable[[], Mapping[str, str | int]] = machine
    versions: Callable[..., Mapping[str, str]] = versions
    validate: Callable[..., tuple[list[Check], dict[str, Any]]] = validate


@dataclass(frozen=True)
class Pending:
    """The settings of a campaign that have not passed yet with this `installation` (a machine and its programs).

    Networks are measured as `shells` emulate them; `delayed` are sites whose servers are beyond the network.
    `compared`: whether properties without a setting are measured, too, since comparisons of protocols depend on them.
    """

    networks: Sequence[Network]
    protocols: Sequence[Protocol]
    delayed: Sequence[DelayedSite]
    shells: str
    compared: bool
    installation: Mapping[str, Any]

    def __bool__(self) -> bool:
        return bool(self.networks or self.protocols or self.delayed)


def pending(
    folder: Path,
    networks: Iterable[Network],
    protocols: Iterable[Protocol],
    shells: str = DEFAULT_SHELLS,
    delayed: Iterable[DelayedSite] = (),
    here: Machine = Machine(),
) -> Pending:
    """Those settings of the campaign in `folder` that have not passed yet on this machine and with these programs.
    Raises EyelevelError."""
    networks, protocols = list(networks), list(protocols)
    compared = len(protocols) > 1
    facts = here.facts()
    # Protocols are always measured on our shells, whichever shells the campaign uses.
    of_ours = here.versions((), shells=DEFAULT_SHELLS) if protocols else {}
    further = {**programs_of(protocols), **hop_programs(networks)}
    of_theirs = here.versions(DEFAULT_SERVERS, shells=shells, further=further)
    installation = {"host": facts["host"], "testbed": facts["testbed"], "versions": {**of_ours, **of_theirs}}
    try:
        entries = kept_entries(folder)
    except EyelevelError as error:
        raise EyelevelError(f"{error}; remove it, and it is written again") from None
    # All checkouts of a commit with uncommitted changes have the same name, even if the changes differ. So what passed
    # with one of them may fail with another.
    distinguishable = not str(facts["testbed"]).endswith("-dirty")
    valid = [entry for entry in entries if distinguishable and entry.on == installation]
    proven = [setting for entry in valid for setting in entry.passed]
    comparable = [setting for entry in valid for setting in entry.passed if entry.is_comparable(setting)]
    known = comparable if compared else proven
    return Pending(
        [network for network in networks if unstructured(network) not in proven],
        [protocol for protocol in protocols if unstructured(protocol) not in known],
        [site for site in delayed if unstructured(site) not in proven],
        shells,
        compared,
        installation,
    )


def validate_pending(folder: Path, wanted: Pending, here: Machine = Machine()) -> list[Check]:
    """Measure the `wanted` settings of the campaign in `folder`. Returns the checks; they are stored in `folder`,
    passed or not. Raises EyelevelError when one failed."""
    if not wanted:
        return []
    with TemporaryDirectory(prefix="validate-") as temporary:
        checks, seen = here.validate(
            wanted.networks,
            wanted.protocols,
            Path(temporary),
            quick=True,
            compared=wanted.compared,
            shells=wanted.shells,
            delayed=wanted.delayed,
        )
    failed = [check for check in checks if not check.passed]
    wrong = {check.subject for check in failed}
    settings: list[Network | DelayedSite | Protocol] = [*wanted.networks, *wanted.delayed, *wanted.protocols]
    passed = tuple(unstructured(setting) for setting in settings if setting.name not in wrong)
    keep_entries(folder, [ValidationEntry(now_iso(), dict(wanted.installation), passed, tuple(checks), seen)])
    if failed:
        check = failed[0]
        expected = f"{check.configured} {check.tolerance}".rstrip()
        spoken = itertools.chain.from_iterable(map(each_spoken, wanted.protocols))
        is_of_program = any(one.program and one.name in wrong for one in spoken)
        claims = "; or its table in protocols.toml claims what the program does not do" if is_of_program else ""
        raise EyelevelError(
            f"{len(failed)} of {plural('check', len(checks))} failed, the first: {check.subject}, {check.name}: "
            f"{check.measured} (expected: {expected}); all are in {folder / VALIDATION}; if the machine was "
            f"busy, try again when it is not{claims}"
        )
    return checks


def validate_worker(
    scratch: Path,
    networks: Sequence[Network],
    protocols: Sequence[Protocol],
    delayed: Sequence[DelayedSite] = (),
) -> tuple[str | None, Callable[[Path], None]]:
    """Measure the settings of a campaign on this machine, a worker of a cluster. Returns, for
    `measure.campaign.remote`, why they fail (None if they pass), and a function that stores the results in a folder."""
    fault = None
    try:
        validate_pending(scratch, pending(scratch, networks, protocols, delayed=delayed))
    except EyelevelError as error:
        fault = f"make validate fails there: {error}"
    return fault, partial(keep_entries, more=kept_entries(scratch))
