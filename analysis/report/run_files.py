"""Links from a report to the files of its runs: HARs, network logs, captures and logs of connections.

A link is relative. It leads only to a file that exists, among the runs of the report's own campaign. So the report in a
package, which has no runs, has no links.
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

# A run may have several files of each of these kinds: kind → the ending of the files' names. KINDS are all kinds, the
# columns of the table.
ENDINGS = {"captures (pcapng)": ".pcapng", "connections (qlog)": QLOG_ENDING}
KINDS = ("HAR", "network log", *ENDINGS)
# A table of more runs would fill most of the page.
MOST_RUNS = 200


@dataclass(frozen=True)
class Link:
    """A link: its text, and its target."""

    text: str
    href: str


@dataclass(frozen=True)
class RunFiles:
    """A run, with its site, network and protocol by the names that readers see, and the links to its files by kind."""

    site: str
    network: str
    protocol: str
    run: int
    links: Mapping[str, list[Link]]


@dataclass(frozen=True)
class RunFilesTable:
    """The files of some `runs` among the `valid_runs` of a campaign, and the `kinds` of these files."""

    runs: list[RunFiles]
    valid_runs: int

    @property
    def kinds(self) -> list[str]:
        """The kinds of files that at least one of the runs has, in the order of the table."""
        return [kind for kind in KINDS if any(run.links[kind] for run in self.runs)]


@dataclass(frozen=True)
class Links:
    """Makes links from a report in the folder `report` to files of the campaign in the folder `campaign`."""

    campaign: Path
    report: Path

    def __call__(self, files: Mapping[str, Path]) -> list[Link]:
        """Links with these texts to those of `files` that exist among the campaign's runs."""
        return [Link(text, self._href(path)) for text, path in files.items() if is_of_runs(path, self.campaign)]

    def table(self, campaign: CampaignTable) -> RunFilesTable:
        """The files of the campaign's runs that count, of at most MOST_RUNS runs: the first runs of each setting."""
        valid = campaign.valid
        # Campaigns of other programs may not record where runs are.
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
    """Kind → text → path of each file that a run has in its `folder`; every one of KINDS is a key."""
    files: dict[str, dict[str, Path]] = {kind: {} for kind in KINDS}
    logs = sorted(folder.glob(NETWORK_LOGS))
    for kind, path in (("HAR", folder / HAR), *(("network log", log) for log in logs)):
        if path.is_file():
            files[kind][kind] = path
    for kind, ending in ENDINGS.items():
        files[kind] = {path.stem: path for path in sorted(folder.glob(f"*{ending}"))}
    return files
