"""Measures how many lanes a machine takes before runs in lanes take longer than runs that have the machine to
themselves.

`trial` loads a page with and without lanes, `equivalence` tests the times, and `calibration` tries numbers of lanes.
"""
