"""Validation of networks: a measurement of the path, judged by a module for each of its properties; hops, background
flows, and servers that are farther away."""
