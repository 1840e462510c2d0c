"""How fast recordings are imported, and how fast and how large the servers that replay them start."""
