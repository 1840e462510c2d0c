"""The usual shells, for those who name them and run none."""

DEFAULT = "ours"
