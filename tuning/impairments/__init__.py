"""Impairments, one module each; `tuning.networks` finds the modules in this folder."""
