"""A path between two machines: measured by a probe at both ends, and written as a network's profile."""
