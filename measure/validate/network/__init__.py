"""Validation of networks: a measurement of the path, judged by a module for each of its properties; also of hops,
background flows, and servers beyond the network."""
