"""Statistics of samples: ratios within blocks, means over sites, intervals, tests, corrections, verdicts and plans.

All functions take and return numbers and tables. Nothing here reads a file, knows of a campaign, or writes a sentence.
"""
