"""The ladder's intervals have their nominal coverage.

For the rungs of a network and metric, they are simultaneous; for the whole ladder, the interval is separate, and it
contains the sum of the rungs.
"""

from pathlib import Path

import numpy as np
import pytest
from support.ladders import TRANSPORT_ARQ, TRANSPORT_SLOW, TRUTH, write_ladder
from support.rates import lower_bound, tell, upper_bound

from analysis.runs import load
from studies.ladder.contributions import HIDDEN_LOSSES, SLOW_BROWSER, SUM, VISIBLE_LOSSES, WHOLE, contributions
from studies.ladder.rungs import ABOVE, RUNGS

CONFIDENCE = 0.95
CAMPAIGNS = 400
# The highest accepted coverage of simultaneous intervals. It is above CONFIDENCE, since Bonferroni's inequality holds
# for any errors of rungs, and is cautious for correlated ones: neighbouring rungs share a protocol.
MOST_CAREFUL = 0.995
# How often at most the sum of complete ladders is outside the interval of the whole.
SUM_OUTSIDE = 0.02


@pytest.mark.parametrize(("sites", "blocks"), [(4, 5), (4, 10), (1, 5)])
def test_intervals_of_the_ladder_cover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sites: int, blocks: int
) -> None:
    truth = {rung.change: TRUTH[rung.protocol] for rung in RUNGS[1:]}
    truth |= {HIDDEN_LOSSES: TRANSPORT_ARQ, VISIBLE_LOSSES: TRUTH[ABOVE] - TRANSPORT_ARQ}
    truth |= {SLOW_BROWSER: TRANSPORT_SLOW - TRUTH[ABOVE]}
    together = alone = outside = 0
    for seed in range(CAMPAIGNS):
        folder = write_ladder(tmp_path / str(seed), seed=seed, sites=sites, blocks=blocks, over=["da2gc"])
        table = contributions(load(folder), CONFIDENCE)
        table = table[table["metric"] == "si"].set_index("name")
        rows = table.loc[list(truth)]
        shares = np.expm1(list(truth.values()))
        together += bool(((rows["gain_low"] <= shares) & (shares <= rows["gain_high"])).all())
        (whole,) = table[table["kind"] == WHOLE].to_dict("records")
        alone += whole["gain_low"] <= np.expm1(sum(TRUTH.values())) <= whole["gain_high"]
        outside += not table.loc[table["kind"] == SUM, "is_shown"].item()
    tell(capsys, f"{sites} sites, {blocks} blocks", *(count / CAMPAIGNS for count in (together, alone, outside)))
    assert upper_bound(together, CAMPAIGNS) >= CONFIDENCE and lower_bound(together, CAMPAIGNS) <= MOST_CAREFUL
    assert upper_bound(alone, CAMPAIGNS) >= CONFIDENCE
    assert lower_bound(outside, CAMPAIGNS) <= SUM_OUTSIDE
