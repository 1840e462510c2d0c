"""The browsers that load pages, and Browsertime, which drives them.

A browser is a module directly in here that names it as its `BROWSER` (`browsers.contract`); there is no other list.
"""
