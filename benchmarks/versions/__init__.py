"""A comparison of two versions of this project: whether their measurements agree."""
