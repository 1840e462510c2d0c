"""How long single files take from the servers (paper, Figure 2).

The browser downloads each file over a separate connection, on a network that only adds a delay, so that servers should
take equally long. A page downloads one file from each of several servers and reports how long each took
(`studies.downloads.pages`); the times are in the servers' request log.
"""

from pathlib import Path

import pandas as pd

from dataset.reasons import Reason
from dataset.run_files import REQUEST_LOG
from dataset.table import read_document, valid_rows
from measure.campaign.campaign import Campaign
from measure.campaign.method import Method
from measure.run.aliases import choose_protocols
from measure.run.evidence import Evidence, page_requests
from measure.run.setting import Loading, Setting
from record import collection
from studies.downloads import pages as downloads
from studies.downloads.defaults import DOWNLOADS, NETWORK, PROTOCOLS
from studies.study import Measurement, Request
from tuning import networks, protocols
from tuning.settings import choose_one

STUDY = "downloads"

SIZES_BYTES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = ["protocol", "size_bytes", "repetition", "ms"]
REPEATS = 2


class DownloadsMethod(Method):
    """Loads a page that downloads files and must report the time of each download."""

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """See `Method`."""
        if reason := super().reason_against(setting, folder, evidence):
            return reason
        count = len(read_times(folder))
        return None if count == downloads.DOWNLOADS else Reason(STUDY, f"the page reported {count} times")


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Its `runs` count downloads; each load makes several downloads."""
    earlier = dict(request.document.study) if request.document else {}
    number = max(request.runs or 0, int(earlier.get("downloads", 0 if request.runs else DOWNLOADS)))
    network = choose_one("network", _one(request.names("net", "networks", NETWORK)), networks.load())
    over = choose_protocols(request.names("proto", "protocols", PROTOCOLS), protocols.load())
    sites = [collection.load_site(downloads.page_name(size_bytes)) for size_bytes in SIZES_BYTES]
    chosen = Campaign(
        folder=request.folder,
        sites={site.name: site for site in sites},
        networks={network.name: network},
        protocols={protocol.name: protocol for protocol in over},
        runs=-(-number // downloads.DOWNLOADS),
        seed=request.plan_seed,
        loading=Loading(repeatable=False, filmed=False, browser=request.browser_name),
        method=DownloadsMethod(),
        repeats=request.setting("repeats", REPEATS),
        study={"name": STUDY, "downloads": number},
    )
    return Measurement(chosen, summary=lambda: [f"downloaded: {chosen.folder}"])


def read_downloads(folder: Path) -> pd.DataFrame:
    """A row with COLUMNS for each download that counts in the campaign in `folder`. Raises EyelevelError."""
    document, rows = read_document(folder), []
    for row in valid_rows(folder, STUDY):
        size_bytes = downloads.page_named(row.site)
        first = (row.run - 1) * downloads.DOWNLOADS + 1
        for repetition, ms in enumerate(read_times(folder / row.folder), start=first):
            if document and repetition <= int(document.study["downloads"]):
                rows.append((row.protocol, size_bytes, repetition, ms))
    return pd.DataFrame(sorted(rows, key=lambda download: download[:3]), columns=COLUMNS)


def read_times(folder: Path) -> list[float]:
    """The times (ms) that the page of the run in `folder` reported."""
    times = [downloads.reported_ms(request.url) for request in page_requests(folder / REQUEST_LOG)]
    # If a browser makes a returning visit, it loads the page twice; the last visit is the measured one.
    return ([[], *(of_load for of_load in times if of_load)])[-1]


def _one(names: str | list[str]) -> str:
    return names if isinstance(names, str) else names[0]
