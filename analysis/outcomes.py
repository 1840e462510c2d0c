"""How a comparison ends, in words that all modules share, and the thresholds that nobody declares.

Those that a campaign declares stand in `hypotheses.toml`, those of the stopping rule in `analysis.sequential`.

The sign of a difference is the same everywhere: compared - reference, in ms or as a share of the reference (a gain),
so negative means faster. The heat maps of `studies.grid` alone turn it round, as Kakhki et al. do.
"""

# The paper's threshold for the p value of its one-way ANOVA.
SIGNIFICANT_P = 0.01
# A diagnostic warns below this p value.
WARNING_P = 0.01
# It also warns where a protocol's share of excluded attempts is higher than the lowest one by this much, whatever p is.
UNEVEN_SHARE = 0.1
# With fewer sites, a spread between sites means nothing; with few, intervals over them are wide.
LEAST_SITES, FEW_SITES = 2, 10
# With fewer runs, a site's test finds only large differences.
FEW_RUNS = 5
# A sample is wildly skewed with a |skewness| above this, or a run of more than so many medians.
WILD_SKEWNESS, WILD_RATIO = 2.0, 3.0

FASTER, SLOWER = "faster", "slower"
# Of the paper's test.
NO_DIFFERENCE, UNTESTED = "no difference", "untested"
# Of the tests beyond the paper.
EQUIVALENT, UNDECIDED = "equivalent", "undecided"
# Of the declared family: neither a difference nor equivalence is shown.
NOT_DECIDED = "not decided"
BEYOND_THE_PAPER = (FASTER, SLOWER, EQUIVALENT, UNDECIDED)
# Of the stopping rule, so far.
OPEN = "open"
