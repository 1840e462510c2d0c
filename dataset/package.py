"""A campaign's package as a folder (docs/package.md): its files, and whether they are unchanged since it was written.

A package may come from anybody. So nothing about it is trusted: the content of its files, their size, and the targets
of their names.
"""

import os
from hashlib import sha256
from math import prod
from pathlib import Path

from base.bounded import parse_json
from base.errors import EyelevelError
from dataset.declaration import HYPOTHESES
from dataset.plan import PLAN
from dataset.reading import read_bytes
from dataset.table import DOCUMENT, GIVEN_UP, LAST_FRAMES, RUNS, require_document
from dataset.validation import VALIDATION
from dataset.verdicts import VERDICTS

METADATA = "ro-crate-metadata.json"
# The files from which a campaign is resumed; a package has those of them that the campaign has.
FILES = {
    RUNS: "All attempts at runs, a row each; runs.schema.json describes the columns",
    DOCUMENT: "Settings, versions of all programs, the machine, what the sites are",
    PLAN: "All runs in order, by block",
    HYPOTHESES: "The question, as it was declared before the first run",
    VALIDATION: "Measurements of networks and protocols before the first run",
    VERDICTS: "Decisions about attempts that were made later",
    GIVEN_UP: "Sites that were given up or withdrawn on a network, and why",
    LAST_FRAMES: "Digests of how pages looked in the end, by which later runs are compared with these",
}

# How a file of a package differs from what was written.
MISSING, CHANGED, ADDED = "missing", "changed", "added"

# A package's name is its campaign's name and this ending.
ENDING = "-package"

# Limits. The paper's whole study has 24,000 runs. Each run may have several attempts, which are lines of tables; a row
# of runs.csv takes 5 kB of memory, and 0.7 kB in the file.
MOST_RUNS = 100_000
MOST_LINES = 200_000


def is_package(folder: Path) -> bool:
    """Whether `folder` is a package of a campaign."""
    return (folder / METADATA).is_file()


def checksums(package: Path) -> dict[str, str]:
    """The names of the files of `package`, and the SHA-256 that each had when the package was written. Raises
    EyelevelError."""
    path = package / METADATA
    if not package.is_dir():
        raise EyelevelError(f"there is no folder {package}; name a package, which 'make package' writes")
    if not is_package(package):
        raise EyelevelError(f"{package} is not a package: it has no {METADATA} ('make package' writes one)")
    try:
        graph = parse_json(_content(path))["@graph"]
        return {str(entry["@id"]): str(entry["sha256"]) for entry in graph if "sha256" in entry}
    except (KeyError, TypeError, ValueError) as error:
        raise EyelevelError(f"{path} is broken: {error!r}") from None


def differences(package: Path) -> dict[str, str]:
    """The files of `package` that are not as they were when it was written: name → MISSING, CHANGED or ADDED. Raises
    EyelevelError."""
    known = checksums(package)
    there = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_symlink() or not path.is_dir()}
    wrong = {
        name: CHANGED if name in there else MISSING
        for name, checksum in known.items()
        if name not in there or not _is_written(package / name, checksum)
    }
    return wrong | dict.fromkeys(sorted(there - {*known, METADATA}), ADDED)


def require_files(package: Path) -> None:
    """Raises EyelevelError if one of the `FILES` of `package` has changed since it was written, or contains more than
    can be read."""
    known = checksums(package)
    for name in FILES:
        path = package / name
        content = _content(path) if os.path.lexists(path) else None
        if (None if content is None else sha256(content).hexdigest()) != known.get(name):
            raise EyelevelError(f"{path} has changed since the package was written ({METADATA}): restore it")
        if content is not None:
            _require_readable(path, content)
    _require_countable(package)


def _is_written(path: Path, checksum: str) -> bool:
    try:
        return sha256(_content(path)).hexdigest() == checksum
    except EyelevelError:
        return False


def _content(path: Path) -> bytes:
    """The content of the file `path`. Raises EyelevelError if it is missing, too long, or no regular file."""
    try:
        return read_bytes(path)
    except FileNotFoundError as error:
        raise EyelevelError(f"{path} cannot be read: {error.strerror}") from None


def _require_readable(path: Path, content: bytes) -> None:
    """Raises EyelevelError if reading the `content` of the file `path` would take far more memory than the content
    itself."""
    if path.suffix in (".csv", ".jsonl") and (lines := content.count(b"\n") + content.count(b"\r")) > MOST_LINES:
        raise EyelevelError(f"{path} cannot be read: it has {lines:,} lines, more than {MOST_LINES:,}")
    documents = {".json": [content], ".jsonl": content.split(b"\n")[:-1]}.get(path.suffix, [])
    for document in filter(None, documents):
        try:
            parse_json(document)
        except ValueError as error:
            raise EyelevelError(f"{path} is broken: {error}") from None


def _require_countable(package: Path) -> None:
    """Raises EyelevelError if the settings of `package` declare more runs than can be planned."""
    path, settings = package / DOCUMENT, require_document(package).settings
    sizes = [len(group) for group in (settings.sites, settings.networks, settings.protocols)]
    if (runs := (settings.runs or 1) * prod(sizes) * (1 + len(settings.further_browsers))) > MOST_RUNS:
        raise EyelevelError(f"{path} declares {runs:,} runs, more than the {MOST_RUNS:,} that a package may have")
