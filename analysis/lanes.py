"""What a reader must know of a campaign whose machines measured several runs at once (`measure.host.lanes`)."""

from analysis.text import listing
from dataset.table import CampaignDocument


def warnings(document: CampaignDocument) -> list[str]:
    """That nobody knows whether the campaign's lanes disturbed each other; nothing where that was measured before, or
    one run was made at a time."""
    machines = [name for name, record in document.lanes.items() if not record.get("calibration")]
    if document.settings.lanes == 1 or not machines:
        return []
    return [
        f"{document.settings.lanes} runs were made at once, in lanes, on {listing(machines)}, since somebody said so: "
        "whether they disturbed each other was not measured. Runs of a block are compared within their lane; times "
        "must not be compared with those of campaigns in another number of lanes. LANES=auto measures first."
    ]


def facts(document: CampaignDocument) -> dict[str, str]:
    """How many lanes each machine had, and why; nothing where there were none, and none were tried."""
    return {
        f"lanes of {name}": f"{record['count']}: {reason(record)}" for name, record in sorted(document.lanes.items())
    }


def reason(record: dict[str, object]) -> str:
    """Why a machine has as many lanes as `record` says."""
    calibration = record.get("calibration")
    return str(calibration.get("reason")) if isinstance(calibration, dict) else "a number that was given"
