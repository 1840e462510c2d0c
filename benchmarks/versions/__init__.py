"""A comparison of two versions of this project: whether they measure the same."""
