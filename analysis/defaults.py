"""What analyses take and call their results unless the command line says otherwise, and what it can choose."""

# What a campaign of an answer is called unless its name is given: this, and its site's name.
PREFIX = "answer-"
# The quiet times, in ms, that are tried.
CANDIDATES_MS = (1000, 1500, 2000)
# How the noise of simulated runs is distributed.
NOISES = ("normal", "lognormal", "heavy")
# Where a user study is served.
LOCAL = "127.0.0.1"
