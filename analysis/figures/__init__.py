"""A campaign's figures, one in each file: a function draws the table that it gets, and reads nothing else."""
