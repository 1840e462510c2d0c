"""Whether two versions of this project measure the same."""
