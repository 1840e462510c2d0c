"""From a campaign's table to its report: the modules of this folder read and analyse campaigns.

`statistics` computes, `paper` holds a campaign against the paper, `figures` draws, and `report` writes.
"""
