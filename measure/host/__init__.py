"""The machine that makes the runs."""
