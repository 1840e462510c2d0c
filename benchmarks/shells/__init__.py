"""How exact and how fast the shells are, side by side with other ways to emulate a network."""
