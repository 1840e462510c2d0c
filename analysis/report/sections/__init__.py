"""Sections of a campaign's report, one module each; a module in this folder is found without being registered."""
