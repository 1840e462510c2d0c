"""Defaults and choices of the commands that analyse. The command line shows them without importing the analyses."""

# The name of an answer's campaign is this prefix and the site's name, unless another name is given.
PREFIX = "answer-"
# The quiet times to try, in ms.
CANDIDATES_MS = (1000, 1500, 2000)
# The distributions of the noise of simulated runs.
NOISES = ("normal", "lognormal", "heavy")
# The address at which a user study is served.
LOCAL = "127.0.0.1"
