"""Statistics of samples: ratios within blocks, means over sites, intervals, tests, corrections, verdicts and plans.

Numbers and tables go in and come out. Nothing here reads a file, knows of a campaign, or writes a sentence.
"""
