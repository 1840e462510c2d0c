"""The ladder's intervals have their nominal coverage.

For the rungs of a report, they are simultaneous; for the whole ladder, the interval is separate.
"""

from pathlib import Path

import numpy as np
import pytest
from support.ladders import TRANSPORT_ARQ, TRANSPORT_SLOW, TRUTH, write_ladder
from support.rates import lower_bound, tell, upper_bound

from analysis import hypotheses
from analysis.runs import load
from studies.ladder.contributions import HIDDEN_LOSSES, SLOW_BROWSER, VISIBLE_LOSSES, WHOLE, contributions
from studies.ladder.rungs import ABOVE, RUNGS

DECLARED = hypotheses.load()
CAMPAIGNS = 400
# The highest accepted coverage of simultaneous intervals. It is above the declared one, since Bonferroni's inequality
# holds for any errors of rungs, and is cautious for correlated ones: neighbouring rungs share a protocol.
MOST_CAREFUL = 0.995


@pytest.mark.parametrize(("sites", "blocks"), [(4, 5), (4, 10), (1, 5)])
def test_intervals_of_the_ladder_cover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sites: int, blocks: int
) -> None:
    truth = {rung.change: TRUTH[rung.protocol] for rung in RUNGS[1:]}
    truth |= {HIDDEN_LOSSES: TRANSPORT_ARQ, VISIBLE_LOSSES: TRUTH[ABOVE] - TRANSPORT_ARQ}
    truth |= {SLOW_BROWSER: TRANSPORT_SLOW - TRUTH[ABOVE]}
    together = alone = 0
    for seed in range(CAMPAIGNS):
        folder = write_ladder(tmp_path / str(seed), seed=seed, sites=sites, blocks=blocks, over=["da2gc"])
        table = contributions(load(folder), DECLARED)
        table = table[table["metric"] == "si"].set_index("name")
        rows = table.loc[list(truth)]
        shares = np.expm1(list(truth.values()))
        together += bool(((rows["gain_low"] <= shares) & (shares <= rows["gain_high"])).all())
        (whole,) = table[table["kind"] == WHOLE].to_dict("records")
        alone += whole["gain_low"] <= np.expm1(sum(TRUTH.values())) <= whole["gain_high"]
    tell(capsys, f"{sites} sites, {blocks} blocks", *(count / CAMPAIGNS for count in (together, alone)))
    confidence = DECLARED.confidence
    assert upper_bound(together, CAMPAIGNS) >= confidence and lower_bound(together, CAMPAIGNS) <= MOST_CAREFUL
    assert upper_bound(alone, CAMPAIGNS) >= confidence
