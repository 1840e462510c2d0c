"""One page load, and what it left."""
