"""Instruments observe a load, or pace it: a module for each, from what it starts to its columns of `runs.csv`.

A module that names an `INSTRUMENT` (`measure.instruments.contract`) takes part in every load by being there. It is also
loaded in the process that drives the browser, so it imports what takes long where that is used.
"""
