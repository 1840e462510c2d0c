"""The cost of reading a film, in comparison with Browsertime's own script."""
