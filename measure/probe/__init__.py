"""Probes of networks: of an emulated one, from within a replay (`emulated`); and of a path between two machines
(`path`), which is written as a network's profile."""
