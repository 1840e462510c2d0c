"""Recorded sites: how complete they are, and of how much they consist."""
