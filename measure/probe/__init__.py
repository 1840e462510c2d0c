"""Probes of networks: of an emulated network, from within a replay (`emulated`), and of a path between two machines
(`path`), which yields a network's profile."""
