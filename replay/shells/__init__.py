"""The shells that emulate a replay's network: a module for each kind, by name in `replay.shells.registry`."""
