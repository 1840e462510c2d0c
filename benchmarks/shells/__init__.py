"""How exact and how fast the shells are, compared with other ways to emulate a network."""
