"""The effect of measuring as an ordinary user, in comparison with measuring as root."""
