"""Browsertime: its configuration for one load, whatever the browser, and its run."""
