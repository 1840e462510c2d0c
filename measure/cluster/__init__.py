"""A cluster's nodes, how they connect, and the keys by which they recognise each other."""
