"""Studies beside the campaign of pages, on the same replay, shells and gates: a folder each, and this list of them."""

from studies import downloads, fairness, fidelity, grid, ladder, packets, states, video
from studies.study import Study

# In the order of the commands and of the sections of a report.
STUDIES: list[Study] = [
    ladder.STUDY,
    grid.STUDY,
    states.STUDY,
    packets.STUDY,
    downloads.STUDY,
    fairness.STUDY,
    fidelity.STUDY,
    video.STUDY,
]
