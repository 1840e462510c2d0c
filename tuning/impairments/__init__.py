"""Impairments: a module for each, which `tuning.networks` finds by being there."""
