"""What a network does to packets: a module for each impairment, which `tuning.networks` finds by being there."""
