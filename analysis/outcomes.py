"""How a comparison ends, in words that all modules share, and the paper's threshold.

The sign of a difference is the same everywhere: compared - reference, in ms or as a share of the reference (a gain),
so negative means faster. The heat maps of `studies.grid` alone turn it round, as Kakhki et al. do.
"""

# The paper's threshold for the p value of its one-way ANOVA.
SIGNIFICANT_P = 0.01

FASTER, SLOWER = "faster", "slower"
# Of the paper's test.
NO_DIFFERENCE, UNTESTED = "no difference", "untested"
# Of the tests beyond the paper.
EQUIVALENT, UNDECIDED = "equivalent", "undecided"
BEYOND_THE_PAPER = (FASTER, SLOWER, EQUIVALENT, UNDECIDED)
# Of the stopping rule, so far.
OPEN = "open"
