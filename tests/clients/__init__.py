"""Plain HTTP clients that run inside a replay and report every byte of a server's answers."""
