"""Validation of protocols, from captures of loads by the browser."""
