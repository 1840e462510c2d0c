"""Reading a campaign's folder into tables."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]

from analysis.gain import METRICS
from eyelevel.errors import EyelevelError


@dataclass(frozen=True)
class CampaignTable:
    """A campaign's attempts, one row each, and its protocols and networks in the order they were named."""

    runs: pd.DataFrame
    networks: tuple[str, ...]
    protocols: tuple[str, ...]


def load(folder: Path) -> CampaignTable:
    """The campaign in `folder`. Raises EyelevelError when there is none, or it is broken."""
    try:
        settings = json.loads((folder / "campaign.json").read_text())["settings"]
        # An empty cell is a missing number in a metric's column, and an empty text elsewhere.
        missing = {metric: [""] for metric in METRICS}
        runs = pd.read_csv(folder / "runs.csv", dtype={"reason": str}, keep_default_na=False, na_values=missing)
    except FileNotFoundError as error:
        raise EyelevelError(f"{folder} is no campaign: {Path(error.filename).name} is missing") from None
    except (ValueError, KeyError) as error:
        raise EyelevelError(f"the campaign in {folder} is broken: {error}") from None
    runs["valid"] = runs["valid"].astype(bool)
    return CampaignTable(runs, tuple(settings["networks"]), tuple(settings["protocols"]))
