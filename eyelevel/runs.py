"""How many runs a campaign makes: a fixed number, or as many as decide its hypotheses.

Imports no measuring code.
"""

from pathlib import Path

from base.errors import Misuse
from dataset.table import CampaignDocument
from eyelevel.defaults import AUTO, MAX_RUNS, RUNS


def number_of_runs(wanted: str | None, most: int | None, original: CampaignDocument | None) -> int:
    """How many runs of each setting are planned: `wanted`, or `most` if `wanted` is auto; by default as many as in the
    `original` campaign.

    Raises EyelevelError.
    """
    if wanted in (None, AUTO):
        usual = RUNS if wanted is None else MAX_RUNS
        return most or (original.settings.runs if original else None) or usual
    assert wanted
    if not wanted.isdecimal() or not int(wanted):
        raise Misuse(f"the number of runs must be 1 or more, or auto, not {wanted!r}")
    return int(wanted)


def enough_runs(folder: Path) -> list[tuple[str, str]]:
    """The sites and networks that have enough runs, according to the analysis of the campaign's own hypotheses.

    Raises EyelevelError.
    """
    from analysis import hypotheses
    from analysis import runs as tables
    from analysis.stopping import decided_cells

    campaign = tables.load(folder)
    return decided_cells(campaign, hypotheses.of_campaign(folder, campaign.document))
