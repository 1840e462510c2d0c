"""Measures how many lanes a machine takes before a run in one of them takes longer than it does alone.

`trial` loads a page in lanes and without, `equivalence` says what that shows, and `calibration` tries numbers of lanes.
"""
