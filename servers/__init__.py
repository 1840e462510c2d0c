"""The servers that replay a recorded site, and the rule by which all of them choose responses.

A server is a module or package directly in this package that defines `SERVER` (`servers.contract`); there is no other
list. A protocol names the server that it needs.
"""
