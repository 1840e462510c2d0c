"""Recorded sites: how complete they are, and how large."""
