"""Default settings of measurements; this module imports nothing else."""

DEFAULT_BROWSER = "chromium"
# The shells in `shells/`.
DEFAULT_SHELLS = "ours"
# Values of the settings for server distances, think times, certificates and HTTP versions: off, or as recorded.
OFF, RECORDED = "off", "recorded"
# How often an invalid run is repeated before it is abandoned.
REPEATS = 2
