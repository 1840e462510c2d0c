"""The cost of the head of a cluster of simulated workers, and whether it keeps up with them."""
