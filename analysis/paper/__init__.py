"""The paper's numbers and claims, and what a campaign says of them.

Nothing here draws or knows of a report.
"""
