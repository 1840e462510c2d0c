"""Measuring: page loads of replayed sites are filmed, checked and put into a table. The packages:

- `run`: one load. `visit` makes it, inside the replay; `evidence` reads from its files what happened; `gates` decide
  whether it counts. `captures` reads its packets. `live` loads pages from the web itself.
- `campaign`: many loads. The `engine` measures a plan of blocks at a `place`: this machine, its `lanes`, or a
  `cluster`. There, each `block` makes its runs, compares them with the other runs of their site (`expectations`) and
  stores them (`results`). `status` and `review` inspect a campaign from outside; `single_load` makes a load without a
  campaign.
- `host`: the machine that makes the loads. `calibration` finds out how many lanes a machine takes; `cluster` has the
  nodes of clusters.
- `validate`: whether networks and protocols behave as configured. `interop`: whether servers and browsers understand
  each other. `probe` measures a path of the internet.
- `sites`: how complete recorded sites are. `completing` fetches what they lack.
"""
