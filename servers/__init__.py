"""The servers that replay a recorded site, and the rule by which all choose a response.

A server is a module or a package directly in here that names it as its `SERVER` (`servers.contract`); there is no other
list. Protocols name the one that they want.
"""
