"""One figure a file: each function draws a table that is given to it, and reads nothing else."""
