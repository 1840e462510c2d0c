"""One page load, and the evidence that it left."""
