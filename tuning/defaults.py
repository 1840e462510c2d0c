"""The browser and the emulator of whoever chooses none, for those who only name them."""

DEFAULT_BROWSER = "chromium"
# Those of `shells/`.
DEFAULT_SHELLS = "ours"
