"""The shells that emulate a replay's network: one module for each kind, which `replay.shells.registry` knows by name."""
