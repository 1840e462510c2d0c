"""Campaigns with small films, and user studies of them."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from eyelevel.simulate import Truth, write
from support.films import HEIGHT, ORANGE, WHITE, frame, keep_film_in, page

# When the page is painted, by protocol (ms).
PAINTED_MS = {"tcp+": 700, "quic": 300}


def filmed_campaign(folder: Path, painted_ms: Mapping[str, int] = PAINTED_MS, sites: int = 1) -> Path:
    """A campaign of `sites` on one network, with a run of each protocol and its film, in which the page is painted at
    this time (ms)."""
    write(folder, Truth(sites=sites, networks=("dsl",), protocols=tuple(painted_ms), runs=2))
    runs = pd.read_csv(folder / "runs.csv", keep_default_na=False)
    for protocol, painted in painted_ms.items():
        of_protocol = runs["protocol"] == protocol
        runs.loc[of_protocol, ["fvc", "lvc", "vc85", "si", "plt"]] = painted
        scenes = [(frame(ORANGE), 200), (frame(WHITE), painted), (page(1.0), 1)]
        keep_film_in([folder / run_folder for run_folder in runs.loc[of_protocol, "folder"]], scenes)
    runs["valid"] = runs["valid"].astype(str).str.lower()
    runs.to_csv(folder / "runs.csv", index=False)
    return folder


SHORT_STUDY = f"""
experimenter = "Ada Example, ada@example.org"
parts = ["ratings", "pairs"]
pairs_per_participant = 1
ratings_per_participant = 2
delayed_controls = 1
identical_controls = 1
control_delay_s = 0.5
rating_delay_s = 0.8
width = {HEIGHT}
height = {HEIGHT}
tail_s = 0.2
[rules]
longest_still_ms = 60000
"""
