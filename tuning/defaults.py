"""Defaults of what is measured, in a module that imports nothing else."""

DEFAULT_BROWSER = "chromium"
# Those of `shells/`.
DEFAULT_SHELLS = "ours"
# Values of settings for distances of servers, think times, certificates and versions of HTTP: off, or as recorded.
OFF, RECORDED = "off", "recorded"
# How often an invalid run is repeated before it is given up.
REPEATS = 2
