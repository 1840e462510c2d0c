"""The options of commands that measure, and which campaign they name; `eyelevel.measuring` carries them out."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.places import RESULTS
from dataset.table import CampaignDocument, read_document
from eyelevel.make import make_line
from measure.campaign.results import require_no_others
from measure.cluster.addresses import scheduler_address

# The longest name of a folder (NAME_MAX of limits.h).
NAME_BYTES = 255


@dataclass(frozen=True)
class MeasuringOptions:
    """How a command measures its campaign, which `again`, a command line, resumes.

    `unnamed`: of a new campaign, the variables that decide how long it takes and that its user did not give; a long one
    is asked about unless the user `agreed`, or `budget_s` says how long all may take, validation included (s). The
    others are options of the command line.
    """

    again: str
    dask: str | None = None
    trust_workers: bool = False
    plain: bool = False
    validate: bool = True
    lanes: str | None = None
    agreed: bool = False
    unnamed: Sequence[str] = ()
    budget_s: float | None = None

    @classmethod
    def take(cls, options: dict[str, Any], **further: Any) -> "MeasuringOptions":
        """Remove from `options` those of this class, and return them with the `further` values. Raises EyelevelError
        when the cluster's scheduler cannot be used."""
        names = ("dask", "trust_workers", "plain", "validate", "lanes", "agreed")
        chosen = cls(**{name: options.pop(name) for name in names}, **further)
        insecure = options.pop("insecure")
        return replace(chosen, dask=chosen.dask and scheduler_address(chosen.dask, insecure=insecure))


def unnamed_variables(
    document: CampaignDocument | None, options: Mapping[str, Any], decisive: Sequence[str]
) -> list[str]:
    """The variables of make for those `decisive` options of a new campaign, which has no `document` yet, that were not
    given. A campaign that is resumed has none."""
    return [] if document else [name.upper() for name in decisive if options[name] is None]


def campaign_name(name: str | None) -> str:
    """`name` if it can be a folder's name, or one made of the time of day. Raises EyelevelError."""
    if name is None:
        return time.strftime("%Y%m%d-%H%M%S")
    if not name or name != Path(name).name or name.startswith("."):
        raise EyelevelError(f"a campaign is a folder in results/, and {name!r} cannot be its name")
    if len(os.fsencode(name)) > NAME_BYTES:
        raise EyelevelError(f"the campaign's name has more than {NAME_BYTES} bytes, as no folder's can: {name[:40]}…")
    return name


def document_of(folder: Path, study: str, command_of: Callable[[str], str]) -> CampaignDocument | None:
    """The document of the campaign of `study` (nothing: of pages) in `folder`, or None when there is none.

    `command_of` names the command of another study. Raises EyelevelError when the campaign is of another, or when the
    folder is one of something else.
    """
    require_no_others(folder)
    document = read_document(folder)
    if document and document.study_name != study:
        other = document.study_name or "campaign of pages"
        again = continuation(command_of(document.study_name), folder)
        raise EyelevelError(f"{folder.name} is a {other}; to resume it: {again}; or name another with --campaign")
    return document


def continuation(command: str, folder: Path) -> str:
    """The command line that resumes the campaign in `folder`."""
    others = {} if folder.parent == RESULTS else {"RESULTS": str(folder.parent)}
    return make_line(command, {"CAMPAIGN": folder.name, **others})
