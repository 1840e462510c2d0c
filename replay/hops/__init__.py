"""The kinds of hops in a replay's network: a module for each, by name in `replay.hops.registry`."""
