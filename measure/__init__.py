"""Measuring: page loads of replayed sites, filmed, checked and put into a table.

`run` is one load and what it left: `visit` (the load, inside the replay) → `film` (what was seen, and when) →
`evidence` (what happened) → `gates` (whether it counts). `host` is the machine that it is made on.

`campaign` is many: a `plan` of blocks, of which each `block` makes its runs' `attempt`s on one machine (`slot`), this
one or those of a cluster, compares them with the others of their site (`expectations`), and keeps them (`results`).
On a machine with many cores several blocks are measured at once, each in a `lane`; `calibration` finds out how many.
`status` and `review` look at one from outside.

`validate` proves that networks and protocols are as configured, and `closing` completes recordings, both by loads
outside of campaigns (`single_load`). `studies` asks what a campaign of filmed pages cannot answer.
"""
