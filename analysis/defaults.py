"""Defaults and choices of the commands that analyse: what the command line shows without importing the analyses."""

# The default name of an answer's campaign: this, then its site's name.
PREFIX = "answer-"
# The quiet times, in ms, that are tried.
CANDIDATES_MS = (1000, 1500, 2000)
# How the noise of simulated runs is distributed.
NOISES = ("normal", "lognormal", "heavy")
# Where a user study is served.
LOCAL = "127.0.0.1"
