"""The modules of this folder read a campaign's table, analyse it and write its report.

`statistics` computes, `paper` compares a campaign with the paper, `figures` draws, and `report` writes.
"""
