"""What the head of a cluster of simulated workers costs, and whether it keeps up with them."""
