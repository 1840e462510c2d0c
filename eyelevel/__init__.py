"""The program `eyelevel`: its commands, above the libraries, which have none.

For a notebook: `from eyelevel import read_campaign`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def read_campaign(folder: Path | str) -> pd.DataFrame:
    """The attempts of the campaign or package in `folder`, one row each, in the order in which they were made.

    Columns, types and units are those of docs/runs-csv.md; times are in ms, from the start of the navigation. A row
    whose `valid` is False does not count, for the `reason` that it names. A metric is missing (NaN) where it was not
    measured. `attrs["campaign"]` is the content of `campaign.json`: settings, versions, sites. Raises EyelevelError
    when `folder` is no campaign, or is broken.
    """
    from analysis.runs import read_runs, typed
    from dataset.table import require_document

    document = require_document(Path(folder))
    runs = typed(read_runs(Path(folder)))
    runs.attrs["campaign"] = document.content()
    return runs
