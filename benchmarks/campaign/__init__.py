"""The cost of a run besides the page's own load, and its parts, compared with stock Browsertime."""
