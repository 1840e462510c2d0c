"""The folder on which all others build: errors, files, places, programs, the browser.

Nothing here depends on sites, servers or networks.
"""
