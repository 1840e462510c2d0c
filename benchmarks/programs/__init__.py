"""The cost of a run with each server and each browser."""
