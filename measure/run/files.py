"""Files in the folder of an attempt, by name."""

# It is written last, when the attempt was made in full.
ATTEMPT = "attempt.json"
