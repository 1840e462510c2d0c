"""Downloads: how long single files take from both servers (paper, Figure 2)."""

from studies.downloads import section

__all__ = ["section"]
