"""The browsers that load pages, and Browsertime, which drives them.

A browser is a module in this folder with an attribute `BROWSER` (`browsers.contract`); there is no other list.
"""
