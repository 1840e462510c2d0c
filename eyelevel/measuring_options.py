"""The options of commands that measure, and how they name a campaign; `eyelevel.measuring` carries them out."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError, Misuse
from dataset.table import CampaignDocument, read_document
from eyelevel.next_step import continuation
from measure.campaign.results import require_no_others
from measure.cluster.addresses import scheduler_address

# The longest name of a folder (NAME_MAX in limits.h).
NAME_BYTES = 255


@dataclass(frozen=True)
class MeasuringOptions:
    """How a command measures its campaign; the command line `again` resumes it.

    `unnamed`: for a new campaign, the variables that decide how long it takes and that the user did not set. A long
    campaign with such variables needs consent, unless the user already `agreed` or `budget_s` limits the whole time,
    validation included (s); `after_s` of it is for what the command does after the runs. The other fields are options
    of the command line.
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
    after_s: float = 0.0

    @classmethod
    def take(cls, options: dict[str, Any], **further: Any) -> "MeasuringOptions":
        """Remove the options of this class from `options`, and return them together with the `further` values.

        Raises EyelevelError when the cluster's scheduler cannot be used.
        """
        names = ("dask", "trust_workers", "plain", "validate", "lanes", "agreed")
        chosen = cls(**{name: options.pop(name) for name in names}, **further)
        insecure = options.pop("insecure")
        return replace(chosen, dask=chosen.dask and scheduler_address(chosen.dask, insecure=insecure))


def unnamed_variables(
    document: CampaignDocument | None, options: Mapping[str, Any], decisive: Sequence[str]
) -> list[str]:
    """The variables of make for those `decisive` options that were not given to a new campaign (`document` is None).

    A resumed campaign has none.
    """
    return [] if document else [name.upper() for name in decisive if options[name] is None]


def campaign_name(name: str | None) -> str:
    """`name` if a folder can have it; by default a name made from the time of day. Raises EyelevelError."""
    if name is None:
        return time.strftime("%Y%m%d-%H%M%S")
    if not name or name != Path(name).name or name.startswith("."):
        raise Misuse(f"a campaign is a folder in results/, and {name!r} is not a name for one")
    if any(letter.isspace() or not letter.isprintable() for letter in name):
        raise Misuse(f"a campaign's name has no blanks, unlike {name!r}; use hyphens")
    if len(os.fsencode(name)) > NAME_BYTES:
        raise Misuse(f"the campaign's name has more than {NAME_BYTES} bytes: {name[:40]}…")
    return name


def document_of(folder: Path, study: str, command_of: Callable[[str], str]) -> CampaignDocument | None:
    """The document of the campaign in `folder`, or None when there is none.

    `study` is the study that the command runs, "" for page loads. `command_of` returns the command that resumes a
    study's campaign. Raises EyelevelError when the folder has a campaign of another study, or something else.
    """
    require_no_others(folder)
    document = read_document(folder)
    if document and document.study_name != study:
        other = document.study_name or "campaign of pages"
        again = continuation(command_of(document.study_name), folder)
        raise EyelevelError(f"{folder.name} is a {other}; to resume it: {again}; or use another --campaign")
    return document
