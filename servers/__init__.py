"""The two servers that replay a recorded site, and the rule by which both choose a response."""
