"""The words for the outcomes of comparisons, which all modules share, and the thresholds that are not declared.

`hypotheses.toml` has the thresholds that a campaign declares.
The sign of a difference is the same everywhere: compared - reference, in ms or as a share of the reference (a gain). So
negative means faster.
"""

# The paper's threshold for the p value of its one-way ANOVA.
SIGNIFICANT_P = 0.01
# A diagnostic warns below this p value.
WARNING_P = 0.01
# Below the first number of sites, a spread between sites means nothing; below the second, intervals are wide.
LEAST_SITES, FEW_SITES = 2, 10
# With fewer runs, the test of a site finds only large differences.
FEW_RUNS = 5
# A sample is wildly skewed if its |skewness| is above the first number, or if its longest run takes more than the
# second number times the median.
WILD_SKEWNESS, WILD_RATIO = 2.0, 3.0

# A contrast does not depend on a program if it is shown to change by less than this share when another program takes
# its place (0.02: -2 % to +2 %). This is less than what counts as a difference of protocols on most networks.
PROGRAM_MARGIN = 0.02

FASTER, SLOWER = "faster", "slower"
# Words for results of the paper's test only.
NO_DIFFERENCE, UNTESTED = "no difference", "untested"
PAPER_VERDICTS = (FASTER, SLOWER, NO_DIFFERENCE, UNTESTED)
# EQUIVALENT: equivalence is shown, even if a difference is shown, too. NOT_DECIDED: neither a difference nor
# equivalence is shown.
EQUIVALENT, NOT_DECIDED = "equivalent", "not decided"
VERDICTS = (FASTER, SLOWER, EQUIVALENT, NOT_DECIDED)
# In place of EQUIVALENT for a mean over sites that scatter by more than what counts as equivalent.
EQUAL_ON_AVERAGE = "equal on average"
