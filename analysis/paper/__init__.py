"""The paper's numbers and claims, and how a campaign's results compare with them.

Nothing here draws or knows of a report.
"""
