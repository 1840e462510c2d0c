"""The cost of a run in addition to the page's own load, and its parts, compared with stock Browsertime."""
