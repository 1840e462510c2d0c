"""The floor every other folder stands on: errors, files, places, programs, the browser.

Nothing here knows of sites, servers or networks.
"""
