"""Films of loads: decoded once, and read for when they begin, what is seen in them when, and a strip of pictures."""
