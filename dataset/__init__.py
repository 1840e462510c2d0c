"""A campaign on the disk: its table and document, declarations, verdicts and packages.

All code that writes or reads results uses these modules. Nothing here knows how a run is made: the modules of the
measuring engine, of servers, replays and browsers are not imported.
"""
