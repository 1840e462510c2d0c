"""Validation of protocols, from captures of page loads."""
