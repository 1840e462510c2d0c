"""A campaign's figures, one in each file: a function draws the table that is given to it, and reads nothing else."""
