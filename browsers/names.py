"""The usual browser, for those who name it and load none."""

DEFAULT = "chromium"
