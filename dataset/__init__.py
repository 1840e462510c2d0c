"""A campaign as it lies on the disk: its table and document, declarations, verdicts and packages.

Whoever writes or reads results works with these modules. Nothing here knows how a run is made: no module of the
measuring engine, of servers, replays or browsers is imported.
"""
