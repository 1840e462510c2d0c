"""Links from a report to what its runs have left behind: HARs, network logs, captures and logs of connections.

A link is relative, and leads only to a file that is there, among the runs of the report's own campaign. So the report
in a package, which has no runs, has none.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from analysis.runs import CampaignTable
from analysis.text import label
from base.qlog import QLOG_ENDING
from dataset.run_files import HAR, NETWORK_LOGS, is_of_runs

# Kinds of files of which a run may have several → the ending of their names; and all kinds, the columns of their table.
ENDINGS = {"captures (pcapng)": ".pcapng", "connections (qlog)": QLOG_ENDING}
KINDS = ("HAR", "network log", *ENDINGS)
# A table of more would be most of the page.
MOST_RUNS = 200


@dataclass(frozen=True)
class Link:
    """A text, and where it leads."""

    text: str
    href: str


@dataclass(frozen=True)
class RunFiles:
    """A run of a setting (its names as readers see them), and the links to its files by their kind."""

    site: str
    network: str
    protocol: str
    run: int
    links: Mapping[str, list[Link]]


@dataclass(frozen=True)
class RunFilesTable:
    """The files of some `runs` of the `valid_runs` that a campaign has, and which `kinds` of files there are."""

    runs: list[RunFiles]
    valid_runs: int

    @property
    def kinds(self) -> list[str]:
        """The files that at least one of the runs has, in the order of the table."""
        return [kind for kind in KINDS if any(run.links[kind] for run in self.runs)]


@dataclass(frozen=True)
class Links:
    """Makes links from the report that is to be in the folder `report` to files of the `campaign` in that folder."""

    campaign: Path
    report: Path

    def __call__(self, files: Mapping[str, Path]) -> list[Link]:
        """Links with these texts to those of `files` that are there, among the campaign's runs."""
        return [Link(text, self._href(path)) for text, path in files.items() if is_of_runs(path, self.campaign)]

    def table(self, campaign: CampaignTable) -> RunFilesTable:
        """The files of the campaign's runs that count, MOST_RUNS of them at most: of each setting the first ones."""
        valid = campaign.valid
        # Campaigns of other programs may not say where runs are.
        rows = valid.sort_values("run", kind="stable").head(MOST_RUNS) if "folder" in valid else valid.head(0)
        runs = []
        for row in rows.sort_values(["site", "network", "protocol", "run"], kind="stable").to_dict("records"):
            files = files_of(self.campaign / str(row["folder"]))
            links = {kind: self(files[kind]) for kind in KINDS}
            if any(links.values()):
                setting = (str(row["site"]), label(str(row["network"])), label(str(row["protocol"])))
                runs.append(RunFiles(*setting, int(row["run"]), links))
        return RunFilesTable(runs, len(valid))

    def _href(self, path: Path) -> str:
        return quote(os.path.relpath(path.resolve(), self.report.resolve()))


def files_of(folder: Path) -> dict[str, dict[str, Path]]:
    """Kind → text → path of each file that a run has left in its `folder`; all KINDS are there."""
    files: dict[str, dict[str, Path]] = {kind: {} for kind in KINDS}
    logs = sorted(folder.glob(NETWORK_LOGS))
    for kind, path in (("HAR", folder / HAR), *(("network log", log) for log in logs)):
        if path.is_file():
            files[kind][kind] = path
    for kind, ending in ENDINGS.items():
        files[kind] = {path.stem: path for path in sorted(folder.glob(f"*{ending}"))}
    return files
