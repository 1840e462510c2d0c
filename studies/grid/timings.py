"""How long the browser waited for an object of a grid's page and how long it downloaded it, from the HAR of each
run."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.runs import CampaignTable
from analysis.statistics.intervals import Estimate, over_runs
from base.errors import EyelevelError
from base.files import read_json
from dataset.run_files import HAR

COLUMNS = ["network", "protocol", "run", "wait_ms", "receive_ms"]


@dataclass(frozen=True)
class MeanTimes:
    """The mean times of a network and a protocol, in ms: of waiting, of downloading, and of both together."""

    wait_ms: Estimate
    receive_ms: Estimate
    both_ms: Estimate


def timings(campaign: CampaignTable, site: str, networks: list[str]) -> pd.DataFrame:
    """The timings of the one image of the page `site`: a row with `COLUMNS` for each valid run on `networks`.

    Wait: from the request to the first byte of the response; receive: from there to the last byte. Runs without a HAR
    are left out. Raises EyelevelError if a HAR is broken.
    """
    valid = campaign.valid
    runs = valid[(valid["site"] == site) & valid["network"].isin(networks)]
    rows = []
    for row in runs.itertuples():
        path = campaign.folder / str(row.folder) / HAR
        if path.exists():
            rows.append((row.network, row.protocol, row.run, *_image(path)))
    return pd.DataFrame(rows, columns=COLUMNS)


def mean_times(timings: pd.DataFrame, confidence: float) -> dict[tuple[str, str], MeanTimes]:
    """Network and protocol → their mean times, from a table of `timings`."""
    return {
        (str(network), str(protocol)): MeanTimes(
            over_runs(runs["wait_ms"], confidence),
            over_runs(runs["receive_ms"], confidence),
            over_runs(runs["wait_ms"] + runs["receive_ms"], confidence),
        )
        for (network, protocol), runs in timings.groupby(["network", "protocol"])
    }


def _image(path: Path) -> tuple[float, float]:
    try:
        entries = read_json(path)["log"]["entries"]
        images = [entry["timings"] for entry in entries if entry["request"]["url"].endswith(".png")]
        return float(images[-1]["wait"]), float(images[-1]["receive"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise EyelevelError(f"{path} has no timings of the page's image: {error!r}") from None
