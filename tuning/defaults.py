"""The browser and the emulator of whoever chooses none, and how films are made: for those who only name them."""

DEFAULT_BROWSER = "chromium"
# Those of `shells/`.
DEFAULT_SHELLS = "ours"
# Pictures per second of a film.
FRAMERATE = 30
# What is as it was recorded, or not at all: distances of servers, think times, certificates, versions of HTTP.
OFF, RECORDED = "off", "recorded"
