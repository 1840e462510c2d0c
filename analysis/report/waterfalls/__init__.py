"""Waterfalls: the requests of one load, or of two loads side by side, over time, as a page."""
