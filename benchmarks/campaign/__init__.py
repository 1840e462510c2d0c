"""The cost of a run beyond the page's own load, and where it goes; in comparison with stock Browsertime."""
