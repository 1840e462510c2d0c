"""The hypotheses of a campaign as its folder keeps them: their text as `hypotheses.toml`, and in `campaign.json` its
hash and when it was declared, which is before the first run. What the text says is the analysis's to know.
"""

from hashlib import sha256
from pathlib import Path

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import write_atomically
from measure.table import CampaignDocument

HYPOTHESES = "hypotheses.toml"


def declaration(text: str) -> dict[str, str]:
    """What `campaign.json` says of hypotheses that are declared now; nothing when there are none."""
    return {"sha256": text_sha256(text), "declared_at": now_iso()} if text else {}


def text_sha256(text: str) -> str:
    """The hash of a text, the same as that of a file with it."""
    return sha256(text.encode()).hexdigest()


def keep_hypotheses(folder: Path, text: str) -> None:
    """Keep `text` in a campaign's `folder`, if there is any."""
    path = folder / HYPOTHESES
    if text and not (path.exists() and path.read_bytes() == text.encode()):
        write_atomically(path, text)


def kept_hypotheses(folder: Path, document: CampaignDocument) -> str:
    """The text that the campaign in `folder` keeps, whose `campaign.json` is `document`; nothing when it declared none.

    Raises EyelevelError when it is not the one that was declared.
    """
    if not document.hypotheses:
        return ""
    path, declared_sha256 = folder / HYPOTHESES, document.hypotheses.get("sha256")
    try:
        text = path.read_bytes().decode()
    except (OSError, ValueError):
        text = ""
    if text_sha256(text) != declared_sha256:
        raise EyelevelError(
            f"{path} is missing, or no longer what the campaign declared (SHA-256 {declared_sha256}): restore it, or "
            "give the hypotheses with --hypotheses"
        )
    return text


def require_same_hypotheses(folder: Path, original: CampaignDocument, text: str) -> None:
    """Raises EyelevelError when the campaign in `folder`, begun as the `original`, goes on with other hypotheses."""
    if text and text_sha256(text) != original.hypotheses.get("sha256"):
        begun = f"those in {folder / HYPOTHESES}" if original.hypotheses else "none"
        raise EyelevelError(
            f"the campaign {folder.name} was begun with other hypotheses, {begun}: go on without --hypotheses "
            "(HYPOTHESES), or use another campaign name; a report can ask them post hoc"
        )
