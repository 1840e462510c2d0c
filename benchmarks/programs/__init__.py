"""What a run costs with each server and each browser."""
