"""Measuring: page loads of replayed sites, filmed, checked and put into a table.

The path of one run: `visit` (one page load, inside the replay) → `film` (what was seen, and when) →
`evidence` (what happened) → `gates` (whether it counts) → `results` (the campaign's folder).
"""
