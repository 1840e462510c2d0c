"""Studies besides the campaign of pages, on the same replay, shells and gates: one folder each, and this list of
them."""

from dataset.table import CampaignDocument
from record.page_sources import SOURCES
from studies import dose, downloads, fairness, fidelity, grid, ladder, order, packets, states, video
from studies.study import Study

# The order of the commands, and of the sections of a report.
STUDIES: list[Study] = [
    ladder.STUDY,
    order.STUDY,
    dose.STUDY,
    grid.STUDY,
    states.STUDY,
    packets.STUDY,
    downloads.STUDY,
    fairness.STUDY,
    fidelity.STUDY,
    video.STUDY,
]
# All commands that load sites also accept the pages that a study generates.
SOURCES.update({f"{study.name}-": study.pages for study in STUDIES if study.pages})


def study_of(document: CampaignDocument) -> Study | None:
    """The study that the campaign with this `document` belongs to; None if it belongs to none."""
    return next((study for study in STUDIES if study.name == document.study_name), None)
