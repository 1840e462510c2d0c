"""Campaigns: loading replayed sites with a real browser, run after run, and keeping what was seen."""
