"""The hypotheses of a campaign, as its folder keeps them.

`hypotheses.toml` has their text. `campaign.json` has the hash of the text, the time of the declaration (before the
first run), and the scope of the campaign at that time. Only the analysis interprets the text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import write_atomically
from base.structure import structured, unstructured
from dataset.reading import read_text
from dataset.settings import CampaignSettings
from dataset.table import DOCUMENT, GROWING, CampaignDocument

HYPOTHESES = "hypotheses.toml"


@dataclass(frozen=True)
class Declaration:
    """The declaration of a campaign, and the additions to it after its first run.

    `sha256`: the hash of the text of its hypotheses; `declared_at`: when it declared them. Both are empty if it
    declared none. `sites`, `networks`, `protocols`, `further_browsers`: those that were added → when. `runs`: the
    planned number of runs of each setting: first the declared one, then one for each change after the first run. The
    planned runs need not have been measured.
    """

    sha256: str = ""
    declared_at: str = ""
    sites: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    protocols: Mapping[str, str] = field(default_factory=dict)
    further_browsers: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[int, ...] = ()


def declaration_of(document: CampaignDocument, folder: Path) -> Declaration:
    """The declaration of the campaign in `folder`, whose `campaign.json` is `document`. Raises EyelevelError."""
    return structured(document.hypotheses, Declaration, f"{folder / DOCUMENT} is broken: hypotheses")


def declaration(text: str, settings: CampaignSettings) -> dict[str, Any]:
    """The entry in `campaign.json` for hypotheses that are declared now, in a campaign with these `settings`; empty if
    there are none."""
    return _terse(Declaration(text_sha256(text), now_iso(), runs=_runs(settings))) if text else {}


def continued_declaration(
    folder: Path, original: CampaignDocument, settings: CampaignSettings, *, has_runs: bool
) -> dict[str, Any]:
    """The entry in `campaign.json` if the campaign in `folder` is resumed with `settings`. `has_runs`: runs exist
    already, so anything new in the settings was not declared before. Raises EyelevelError."""
    if not original.hypotheses:
        return {}
    declared, now = declaration_of(original, folder), now_iso()
    if not has_runs:
        return _terse(Declaration(declared.sha256, declared.declared_at, runs=_runs(settings)))
    added: dict[str, Any] = {
        group: {**getattr(declared, group), **dict.fromkeys(_new(settings, original.settings, group), now)}
        for group in GROWING
    }
    runs = declared.runs or _runs(original.settings)
    if settings.runs != original.settings.runs:
        runs = (*runs, *_runs(settings))
    return _terse(replace(declared, **added, runs=runs))


def _runs(settings: CampaignSettings) -> tuple[int, ...]:
    return () if settings.runs is None else (settings.runs,)


def _new(settings: CampaignSettings, original: CampaignSettings, group: str) -> Iterable[str]:
    return [name for name in getattr(settings, group) if name not in getattr(original, group)]


def _terse(declared: Declaration) -> dict[str, Any]:
    """`declared` as a document, without empty values."""
    return {name: value for name, value in unstructured(declared).items() if value}


def text_sha256(text: str) -> str:
    """The hash of a text, which is the same as the hash of a file with this text."""
    return sha256(text.encode()).hexdigest()


def keep_hypotheses(folder: Path, text: str) -> None:
    """Write `text` to a campaign's `folder`, unless it is empty or already there."""
    path = folder / HYPOTHESES
    if text and not (path.exists() and path.read_bytes() == text.encode()):
        write_atomically(path, text)


def kept_hypotheses(folder: Path, document: CampaignDocument) -> str:
    """The text of the hypotheses in the campaign's `folder`, whose `campaign.json` is `document`; empty if it declared
    none.

    Raises EyelevelError if the text is not the declared one.
    """
    if not document.hypotheses:
        return ""
    path, declared_sha256 = folder / HYPOTHESES, document.hypotheses.get("sha256")
    try:
        text = read_text(path)
    except (OSError, EyelevelError):
        text = ""
    if text_sha256(text) != declared_sha256:
        raise EyelevelError(
            f"{path} is missing, or no longer what the campaign declared (SHA-256 {declared_sha256}): restore it, or "
            "give the hypotheses with --hypotheses"
        )
    return text


def require_same_hypotheses(folder: Path, original: CampaignDocument, text: str) -> None:
    """Raises EyelevelError if the campaign in `folder`, begun as the `original`, is resumed with other hypotheses."""
    if text and text_sha256(text) != original.hypotheses.get("sha256"):
        begun = f"those in {folder / HYPOTHESES}" if original.hypotheses else "none"
        raise EyelevelError(
            f"the campaign {folder.name} was begun with other hypotheses, {begun}: resume it without --hypotheses "
            "(HYPOTHESES), or use another campaign name; a report can test others post hoc"
        )
