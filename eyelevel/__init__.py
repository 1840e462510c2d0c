"""The floor every other folder stands on: errors, files, places.

Nothing here knows of sites, servers, networks or browsers.
"""
