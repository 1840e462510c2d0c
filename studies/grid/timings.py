"""How long the browser waited for an object of a grid's page, and downloaded it, from the HAR of each run."""

from pathlib import Path

import pandas as pd

from analysis.runs import CampaignTable
from base.errors import EyelevelError
from base.files import read_json
from measure.run.visit import HAR

COLUMNS = ["network", "protocol", "run", "wait_ms", "receive_ms"]


def timings(campaign: CampaignTable, site: str, networks: list[str]) -> pd.DataFrame:
    """The timings of the one image of the page `site`: a row with `COLUMNS` for each valid run behind `networks`.

    Wait: from the request to the first byte of the answer; receive: to its last. Runs without their HAR are left
    out. Raises EyelevelError when it is broken.
    """
    valid = campaign.valid
    runs = valid[(valid["site"] == site) & valid["network"].isin(networks)]
    rows = []
    for row in runs.itertuples():
        path = campaign.folder / str(row.folder) / HAR
        if path.exists():
            rows.append((row.network, row.protocol, row.run, *_image(path)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _image(path: Path) -> tuple[float, float]:
    try:
        entries = read_json(path)["log"]["entries"]
        images = [entry["timings"] for entry in entries if entry["request"]["url"].endswith(".png")]
        return float(images[-1]["wait"]), float(images[-1]["receive"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise EyelevelError(f"{path} has no timings of the page's image: {error!r}") from None
