"""The cost of the head of a cluster, with simulated workers, and whether it keeps up with them."""
