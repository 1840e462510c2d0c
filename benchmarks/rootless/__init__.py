"""What measuring as an ordinary user changes, beside measuring as root."""
