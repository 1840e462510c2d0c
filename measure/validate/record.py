"""What a campaign keeps of its validations: `validation.json`, an entry for each time something had to be measured."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import write_atomically
from base.ownership import give_to_caller
from measure.host.machine import machine, versions
from measure.validate.checks import Check
from measure.validate.validation import validate
from tuning.networks import Network
from tuning.protocols import TRANSPORTS, Protocol

FILENAME = "validation.json"


def validate_campaign(folder: Path, networks: Iterable[Network], protocols: Iterable[Protocol]) -> list[Check]:
    """Measure what of a campaign has not been found right yet, on this machine and with these programs.

    Returns the checks; they are kept in `folder`, passed or not. Raises EyelevelError when one failed.
    """
    networks, protocols = list(networks), list(protocols)
    here = machine()
    on = {"host": here["host"], "testbed": here["testbed"], "versions": versions(TRANSPORTS)}
    entries = kept_entries(folder)
    # Two checkouts with uncommitted changes are called alike, whatever these are.
    told_apart = not str(here["testbed"]).endswith("-dirty")
    proven = [setting for entry in entries if told_apart and entry["on"] == on for setting in entry["passed"]]
    networks = [network for network in networks if _told(network) not in proven]
    protocols = [protocol for protocol in protocols if _told(protocol) not in proven]
    if not networks and not protocols:
        return []
    with TemporaryDirectory(prefix="validate-") as temporary:
        checks, seen = validate(networks, protocols, Path(temporary), quick=True)
    failed = [check for check in checks if not check.passed]
    wrong = {check.subject for check in failed}
    settings: list[Network | Protocol] = [*networks, *protocols]
    entry = {
        "at": now_iso(),
        "on": on,
        "passed": [_told(setting) for setting in settings if setting.name not in wrong],
        "checks": [check.document() for check in checks],
        "seen": seen,
    }
    keep_entries(folder, [entry])
    if failed:
        check = failed[0]
        raise EyelevelError(
            f"{len(failed)} of {len(checks)} checks failed, the first: {check.subject}, {check.name}: {check.measured} "
            f"instead of {check.configured} {check.tolerance}; all are in {folder / FILENAME}; if the machine was "
            "busy, try again when it is not"
        )
    return checks


def keep_entries(folder: Path, more: Iterable[dict[str, Any]]) -> None:
    """Add what was measured, here or on another machine, to what `folder` keeps. Raises EyelevelError."""
    entries = [*kept_entries(folder), *more]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / FILENAME, json.dumps(entries, indent=1) + "\n")
    give_to_caller(folder)


def kept_entries(folder: Path) -> list[dict[str, Any]]:
    """What `folder` keeps, an entry for each time something was measured. Raises EyelevelError when it is broken."""
    try:
        entries: list[dict[str, Any]] = json.loads((folder / FILENAME).read_text())
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise EyelevelError(f"{folder / FILENAME} is broken ({error}); remove it, and it is made anew") from None
    return entries


def _told(setting: Network | Protocol) -> dict[str, Any]:
    """As JSON has it, so that it can be compared with what was kept."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(setting)))
    return told
