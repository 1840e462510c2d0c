"""Resumes a campaign from its package (`eyelevel.package`): copies its files; then this machine measures its open runs.

The evidence of the earlier runs stays where it was made. Comparing later runs with them needs only the package's
digests of last frames (`dataset.last_frames`). As for any campaign, `measure.campaign.results.opened` checks that this
machine's programs have the campaign's versions.
"""

import re
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

from base.errors import EyelevelError
from base.files import replacing_folder, write_atomically
from base.ownership import give_to_caller
from base.words import plural
from dataset.last_frames import read_digests
from dataset.package import FILES, require_files
from dataset.plan import PLAN, read_plan
from dataset.table import (
    DOCUMENT,
    EARLIER_MACHINE,
    RUNS,
    Row,
    header,
    lines,
    read_given_up,
    read_rows,
    read_table,
    reading_names,
    require_document,
    write_document,
)
from dataset.validation import kept_entries, write_entries
from dataset.verdicts import read_verdicts
from measure.campaign.results import require_no_others
from tuning.defaults import DEFAULT_BROWSER

# The number after a machine's name. A package from a stranger may have more digits than Python converts.
NUMBER = re.compile("[0-9]{1,9}")


def resume_from_package(package: Path, folder: Path) -> bool:
    """Make the campaign in `folder` from the `package`, unless it exists; returns whether it was made.

    The names of its earlier machines get a number (`dataset.table.EARLIER_MACHINE`): machines made from one image may
    share a name, so this machine may have the name of one of them. Raises EyelevelError when `package` is not one,
    or has changed since it was written, or when the campaign exists and lacks attempts that the package has.
    """
    require_sound(package)
    if folder.resolve() == package.resolve():
        raise EyelevelError(f"{package} is the package itself, which is read-only; use another campaign name")
    if (folder / DOCUMENT).exists():
        _require_no_less(package, folder)
        return False
    require_no_others(folder)
    with replacing_folder(folder) as new:
        for name in FILES:
            if (package / name).is_file():
                copyfile(package / name, new / name)
        _number_machines(new)
    give_to_caller(folder)
    return True


def require_sound(package: Path) -> None:
    """Raises EyelevelError unless a campaign can be resumed from the folder `package`: it is a package; its files match
    their checksums and are not too long; and its runs match its settings and are not too many."""
    require_files(package)
    _require_runs_of_settings(package)
    # All that is read later must be sound now; otherwise the new campaign could not be resumed.
    for read in (read_verdicts, read_digests, read_given_up, kept_entries):
        read(package)


def _require_runs_of_settings(package: Path) -> None:
    """Raises EyelevelError when the plan or the table of `package` has a run whose site, network, protocol or browser
    is not in the package's settings. (The names of runs become the names of folders.)"""
    document = require_document(package)
    known = {
        "site": set(document.settings.sites),
        "network": set(document.settings.networks),
        "protocol": set(document.settings.protocols),
        "browser": set(document.settings.browsers) or {DEFAULT_BROWSER},
    }
    planned = [run for block in read_plan(package) for run in block]
    for file, runs in ((PLAN, planned), (RUNS, [row.of for row in read_rows(package)])):
        for run in runs:
            for what, names in known.items():
                if (name := getattr(run, what)) not in names:
                    raise EyelevelError(f"{package / file} has the {what} {name!r}, which is not in {DOCUMENT}")


def _require_no_less(package: Path, folder: Path) -> None:
    """Raises EyelevelError when the campaign in `folder` lacks attempts or verdicts of `package`: then the package was
    resumed elsewhere, or belongs to another campaign."""
    present = {(row.folder, row.started_at) for row in read_rows(folder)}
    attempts = sum((row.folder, row.started_at) not in present for row in read_rows(package))
    decided = set(read_verdicts(folder))
    verdicts = sum(verdict not in decided for verdict in read_verdicts(package))
    counts = ((attempts, "attempt"), (verdicts, "verdict"))
    if lacking := [plural(what, count) for count, what in counts if count]:
        raise EyelevelError(
            f"{folder} lacks {' and '.join(lacking)} that the package {package} has: it is another campaign, or was "
            f"resumed elsewhere; move {folder} away, and the same command takes the package up"
        )


def _number_machines(folder: Path) -> None:
    """Add a number to the names of those machines of the campaign in `folder` that have none yet: the count of how
    often the campaign has been resumed."""
    present, rows = read_table(folder)
    entries, document = kept_entries(folder), require_document(folder)
    # A validation applies to the host that it names (`measure.validate.record`). This name gets a number, too, so that
    # the validation does not apply to another host that happens to have the same name.
    machines = {row.machine for row in rows} | {str(entry.on.get("host", "")) for entry in entries}
    numbers = [machine.rpartition(EARLIER_MACHINE)[2] for machine in machines if EARLIER_MACHINE in machine]
    number = 1 + max((int(text) for text in numbers if NUMBER.fullmatch(text)), default=0)

    def numbered(machine: str) -> str:
        return machine if not machine or EARLIER_MACHINE in machine else f"{machine}{EARLIER_MACHINE}{number}"

    readings = reading_names(present)
    numbered_rows: list[Row] = [replace(row, machine=numbered(row.machine)) for row in rows]
    write_atomically(folder / RUNS, header(readings) + lines(numbered_rows, readings))
    if entries:
        hosts = [{**entry.on, "host": numbered(str(entry.on.get("host", "")))} for entry in entries]
        write_entries(folder, [replace(entry, on=on) for entry, on in zip(entries, hosts, strict=True)])
    machine = {**document.machine, "host": numbered(str(document.machine.get("host", "")))}
    lanes = {numbered(name): record for name, record in document.lanes.items()}
    write_document(folder, replace(document, machine=machine, lanes=lanes))
