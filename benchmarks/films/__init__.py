"""The cost and the exactness of films, in comparison with FFmpeg's, and the cost of their analysis."""
