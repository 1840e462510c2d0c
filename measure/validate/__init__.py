"""Measures whether networks and protocols behave as their settings say (`make validate`)."""
