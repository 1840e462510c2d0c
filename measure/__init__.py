"""Measuring: page loads of replayed sites, filmed, checked and put into a table. A room for each part:

- `run`: one load, and what it left: `visit` (the load, inside the replay), `evidence` (what happened), `gates` (whether
  it counts). `captures` are its packets; `live` loads pages from the web itself.
- `campaign`: many loads. The `engine` measures a plan of blocks at a `place`: this machine, its `lanes`, a `cluster`.
  There each `block` makes its runs, compares them with the others of their site (`expectations`), and keeps them
  (`results`). `status` and `review` look at one from outside; `single_load` is a load without one.
- `host`: the machine on which loads are made. `calibration` finds out how many lanes it takes; `cluster` has the nodes
  of clusters.
- `validate`: whether networks and protocols are as configured. `interop`: whether servers and browsers understand each
  other. `path` probes a path of the internet.
- `sites`: how complete recorded sites are. `completing` completes them.
"""
