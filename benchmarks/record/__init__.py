"""How fast recordings are imported, and the start-up time and memory of the servers that replay them."""
