"""What it costs to read a film, beside Browsertime's own script."""
