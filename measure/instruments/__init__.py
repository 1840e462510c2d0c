"""Instruments observe a load, or pace it. Each has a module, with everything from what it starts to its columns of
`runs.csv`.

Any module here that defines an `INSTRUMENT` (`measure.instruments.contract`) takes part in every load. The process that
drives the browser loads these modules, too, so they import slow modules only where those are used.
"""
