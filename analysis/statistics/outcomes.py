"""How a comparison ends, in words that all modules share, and the thresholds that nobody declares.

Those that a campaign declares stand in `hypotheses.toml`.

The sign of a difference is the same everywhere: compared - reference, in ms or as a share of the reference (a gain),
so negative means faster.
"""

import numpy as np
import pandas as pd

# The paper's threshold for the p value of its one-way ANOVA.
SIGNIFICANT_P = 0.01
# A diagnostic warns below this p value.
WARNING_P = 0.01
# With fewer sites, a spread between sites means nothing; with few, intervals over them are wide.
LEAST_SITES, FEW_SITES = 2, 10
# With fewer runs, a site's test finds only large differences.
FEW_RUNS = 5
# A sample is wildly skewed with a |skewness| above this, or a run of more than this many medians.
WILD_SKEWNESS, WILD_RATIO = 2.0, 3.0

# A contrast does not depend on a program if it is shown to change by less than this share with another one (0.02: -2 %
# to +2 %). It is less than what counts as a difference of protocols behind most networks.
PROGRAM_MARGIN = 0.02

FASTER, SLOWER = "faster", "slower"
# The words for results of the paper's test alone.
NO_DIFFERENCE, UNTESTED = "no difference", "untested"
# Neither a difference nor equivalence is shown.
EQUIVALENT, NOT_DECIDED = "equivalent", "not decided"
VERDICTS = (FASTER, SLOWER, EQUIVALENT, NOT_DECIDED)


def verdicts(gain: "pd.Series[float]", corrected: pd.DataFrame, significant_p: float) -> "pd.Series[str]":
    """Faster or slower where a difference is significant, else equivalent where that is, else not decided.

    `corrected` has the columns p_corrected and equivalence_p_corrected.
    """
    direction = np.where(gain < 0, FASTER, SLOWER)
    is_equivalent = corrected["equivalence_p_corrected"] < significant_p
    otherwise = np.where(is_equivalent, EQUIVALENT, NOT_DECIDED)
    return pd.Series(np.where(corrected["p_corrected"] < significant_p, direction, otherwise), gain.index)
