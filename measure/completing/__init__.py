"""Completes recordings, by loading them in replay."""
