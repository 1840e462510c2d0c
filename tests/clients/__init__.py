"""Plain HTTP clients that run inside a replay and tell every byte that a server answered."""
