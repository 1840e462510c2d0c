"""Grids: page load times of generated pages over a grid of networks."""

from studies.grid import section

__all__ = ["section"]
