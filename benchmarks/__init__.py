"""Measurements of the testbed itself; nothing here is needed to run it."""
