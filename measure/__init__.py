"""Measuring: page loads of replayed sites, filmed, checked and put into a table.

The path of one run: `visit` (one page load, inside the replay) → `film` (what was seen, and when) →
`evidence` (what happened) → `gates` (whether it counts) → `norms` (whether it is like the others of its site) →
`results` (the campaign's folder).

A `campaign` is a `plan` of blocks. A `block` makes its runs' `attempt`s on one machine (`slot`), this one or those of a
`cluster` (`remote`). `status` and `review` look at it from outside.
"""
