"""The program `eyelevel`: its commands. They use the libraries, and no library uses them.

For a notebook: `from eyelevel import read_campaign`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def read_campaign(folder: Path | str) -> pd.DataFrame:
    """The attempts of the campaign or package in `folder`, one row each, in the order in which they were made.

    Columns, types and units are those of docs/runs-csv.md; times are in ms from the start of the navigation. If a row's
    `valid` is False, the attempt does not count, and `reason` says why. A metric that was not measured is missing
    (NaN). `attrs["campaign"]` is the content of `campaign.json`: settings, versions, sites. Raises EyelevelError when
    `folder` is not a campaign or is broken.
    """
    from analysis.runs import read_runs, typed
    from dataset.table import require_document

    document = require_document(Path(folder))
    runs = typed(read_runs(Path(folder)))
    runs.attrs["campaign"] = document.content()
    return runs
