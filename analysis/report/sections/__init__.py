"""Sections of a campaign's report that are a module each, which is found by being there."""
