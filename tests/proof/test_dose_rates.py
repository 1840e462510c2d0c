"""The dose's intervals, of the change without waiting and of the slope, have their coverage; straight lines are seldom
refused as bent."""

import numpy as np
import pytest
from support.doses import DoseWorld, simulated
from support.rates import lower_bound, tell, upper_bound

from analysis.statistics.ratios import mean_over_sites
from studies.dose.changes import BENT_P, line
from studies.dose.shares import SHARES

CAMPAIGNS = 10_000
# Few blocks have cautious degrees of freedom.
MOST_CAREFUL = 0.975
WORLDS = [
    *(DoseWorld(sites=sites, blocks=blocks) for sites in (1, 6, 12) for blocks in (3, 5, 10, 31)),
    *(DoseWorld(heavy=True, blocks=blocks) for blocks in (5, 10, 31)),
    DoseWorld(wait_error=0.1),
    DoseWorld(stalls=2),
    DoseWorld(waiting=(0.2, 0.3, 0.4)),
    DoseWorld(waiting=(0.05, 0.2, 0.6)),
    DoseWorld(slopes=0.4, waits_of_pages=0.3),
]


@pytest.mark.parametrize("world", WORLDS)
def test_intervals_of_a_dose_cover(world: DoseWorld, capsys: pytest.CaptureFixture[str]) -> None:
    doses = simulated(world, CAMPAIGNS, seed=1)
    of_line = line(doses.ratios, doses.waits)
    counts = []
    for values, truth in ((of_line.unwaited, doses.unwaited), (of_line.slope, doses.slope)):
        low, high = mean_over_sites(values).interval(0.95)
        counts.append(int(((low <= truth) & (truth <= high)).sum()))
    bent = int((mean_over_sites(of_line.bend).difference_p() < BENT_P).sum())
    tell(capsys, world, *(count / CAMPAIGNS for count in (*counts, bent)))
    for count in counts:
        # Huber's estimate from ten blocks is short by up to a point.
        assert upper_bound(count, CAMPAIGNS) >= 0.94 and lower_bound(count, CAMPAIGNS) <= MOST_CAREFUL
    assert lower_bound(bent, CAMPAIGNS) <= 1.5 * BENT_P


def test_a_bent_line_is_refused() -> None:
    doses = simulated(DoseWorld(bend=0.1), 500, seed=1)
    assert np.mean(mean_over_sites(line(doses.ratios, doses.waits).bend).difference_p() < BENT_P) > 0.9
    assert len(SHARES) == 3
