"""Reading a campaign's folder into tables."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from base.errors import EyelevelError

METRICS = ("fvc", "lvc", "vc85", "si", "plt")
NEEDED = ("site", "network", "protocol", "run", "valid", "reason", *METRICS)
# What a campaign on several machines calls the column that tells which one made a run.
MACHINE_COLUMNS = ("machine", "worker")
# A check of a network or protocol: the machine, what of, what, as it should be and was, how far apart it may be.
VALIDATED = ("host", "subject", "name", "configured", "measured", "tolerance", "passed")
# Columns that tell how busy the machine was, whatever was measured for that.
CANARY_PREFIX = "canary"


@dataclass(frozen=True)
class CampaignTable:
    """A campaign's attempts, one row each, its protocols and networks in the order they were named, and all that
    `campaign.json` tells of it. `validation` has a row for each check of a network or protocol (`VALIDATED`)."""

    runs: pd.DataFrame
    networks: tuple[str, ...]
    protocols: tuple[str, ...]
    document: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    validation: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(VALIDATED)))

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.folder.resolve().name

    @property
    def filmed(self) -> bool:
        """Whether its loads were filmed; otherwise page load times are all there is."""
        return bool(self.document.get("settings", {}).get("filmed", True))

    @property
    def valid(self) -> pd.DataFrame:
        """The attempts that count."""
        return self.runs[self.runs["valid"]]

    @property
    def machine_column(self) -> str | None:
        """The column that tells which machine made a run, if there was more than one machine."""
        found = (name for name in MACHINE_COLUMNS if name in self.runs and self.runs[name].nunique() > 1)
        return next(found, None)


def load(folder: Path) -> CampaignTable:
    """The campaign in `folder`. Raises EyelevelError when there is none, or it is broken."""
    try:
        document = json.loads((folder / "campaign.json").read_text())
        text = (folder / "runs.csv").read_text()
        # A line that is still being written is not a run yet.
        whole = io.StringIO(text[: text.rfind("\n") + 1])
        # An empty cell is a missing number in a metric's column, and an empty text elsewhere.
        missing = {metric: [""] for metric in METRICS}
        texts = dict.fromkeys(("site", "network", "protocol", "reason", *MACHINE_COLUMNS), str)
        runs = pd.read_csv(whole, dtype=texts, keep_default_na=False, na_values=missing)
        if absent := [name for name in NEEDED if name not in runs]:
            raise EyelevelError(f"{folder / 'runs.csv'} lacks the columns {', '.join(absent)}")
        runs = runs.astype(dict.fromkeys(METRICS, float))
        settings = document["settings"]
        networks, protocols = tuple(settings["networks"]), tuple(settings["protocols"])
    except FileNotFoundError as error:
        raise EyelevelError(f"{folder} is no campaign: {Path(error.filename).name} is missing") from None
    except (ValueError, KeyError, TypeError) as error:
        raise EyelevelError(f"the campaign in {folder} is broken: {error}") from None
    for column in (name for name in runs if name.startswith(CANARY_PREFIX)):
        runs[column] = pd.to_numeric(runs[column], errors="coerce")
    runs["valid"] = runs["valid"].astype(bool)
    return CampaignTable(runs, networks, protocols, document, folder, validation(folder))


def validation(folder: Path) -> pd.DataFrame:
    """What was checked of networks and protocols before the runs in `folder`. Raises EyelevelError."""
    file = folder / "validation.json"
    try:
        entries = json.loads(file.read_text()) if file.exists() else []
        rows = [{"host": entry["on"]["host"], **check} for entry in entries for check in entry["checks"]]
    except (ValueError, KeyError, TypeError) as error:
        raise EyelevelError(f"{file} is broken: {error!r}") from None
    return pd.DataFrame(rows, columns=list(VALIDATED))
