"""A campaign's figures, one in each file: a function draws the table that it gets, and reads nothing else.

`films` chooses runs and takes the pictures of their films.
"""
