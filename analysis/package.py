"""Writes a campaign as a folder that can be cited: an RO-Crate 1.1 (docs/package.md), without films and logs.

The report in it is made only from the files in the folder, so it contains no pictures of the recorded pages.
"""

import hashlib
import mimetypes
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.paper.claims import balance_of
from analysis.runs import MACHINE, CampaignTable, load, records
from analysis.samples import starts_of
from analysis.text import listing
from base.errors import EyelevelError
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from dataset.last_frames import all_digests, write_digests
from dataset.package import FILES, METADATA
from dataset.reading import read_bytes
from dataset.schema import SCHEMA, schema
from dataset.table import RUNS, read_rows, require_document
from dataset.validation import kept_entries

SHEET = "README.md"
# Reports of campaigns of pages have this table (`analysis.report.tables`).
CLAIMS_TABLE = Path("report/tables/claims.csv")
CONTEXT = "https://w3id.org/ro/crate/1.1"
# Newer terms of schema.org, which the context of RO-Crate 1.1 lacks.
FURTHER_TERMS = {"sha256": "http://schema.org/sha256"}


def write_package(folder: Path, into: Path, licence: str, report: Callable[[Path], object]) -> Path:
    """Write the campaign in `folder` as a package to `into`, under `licence` (a URL); returns `into`.

    `report` writes the report of the campaign in a folder. Raises EyelevelError.
    """
    load(folder)
    if into.resolve().is_relative_to(folder.resolve()):
        raise EyelevelError(f"{into} is in the campaign's own folder; choose another place")
    with replacing_folder(into, METADATA) as new:
        # Reports take the campaign's name from its folder.
        draft = new / folder.resolve().name
        draft.mkdir()
        for name in FILES:
            with suppress(FileNotFoundError):
                (draft / name).write_bytes(read_bytes(folder / name))
        write_digests(draft, all_digests(folder, (row.folder for row in read_rows(folder))))
        write_json(draft / SCHEMA.name, schema(require_document(folder).columns))
        report(draft)
        campaign = load(draft)
        for entry in list(draft.iterdir()):
            entry.rename(new / entry.name)
        draft.rmdir()
        (new / SHEET).write_text(_sheet(campaign, new, licence))
        write_json(new / METADATA, _crate(campaign, new, licence))
    give_to_caller(into)
    return into


def _crate(campaign: CampaignTable, folder: Path, licence: str) -> dict[str, Any]:
    """The crate's metadata: the data set, each of its files with size and SHA-256, and the program that made it."""
    files = [_file(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    settings = campaign.settings
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Eyelevel campaign {campaign.name}",
        "description": _summary(campaign),
        "datePublished": _measured_until(campaign) or datetime.now(UTC).date().isoformat(),
        "license": {"@id": licence},
        "hasPart": [{"@id": file["@id"]} for file in files],
        "variableMeasured": list(campaign.metrics),
        "mentions": {"@id": "#measurement"},
    }
    about = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": CONTEXT},
    }
    measurement = {
        "@id": "#measurement",
        "@type": "CreateAction",
        "name": f"Measurement with seed {settings.seed}",
        "instrument": {"@id": "#eyelevel"},
        "result": {"@id": RUNS},
    }
    program = {"@id": "#eyelevel", "@type": "SoftwareApplication", "name": "Eyelevel"}
    terms = {"@id": licence, "@type": "CreativeWork", "name": licence, "description": "The licence of the numbers"}
    graph = [about, root, measurement, program, terms, *files]
    return {"@context": [f"{CONTEXT}/context", FURTHER_TERMS], "@graph": graph}


def _measured_until(campaign: CampaignTable) -> str:
    """The day of the last attempt (ISO 8601); empty if it is unknown."""
    starts = starts_of(campaign.runs)
    return "" if starts.isna().all() else starts.max().date().isoformat()


def _file(path: Path, folder: Path) -> dict[str, Any]:
    name = str(path.relative_to(folder))
    content = path.read_bytes()
    entry = {
        "@id": name,
        "@type": "File",
        "name": path.name,
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
        "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
    }
    return entry | ({"description": FILES[name]} if name in FILES else {})


def _summary(campaign: CampaignTable) -> str:
    runs = campaign.runs
    return (
        f"Loads of {runs['site'].nunique()} sites behind {runs['network'].nunique()} networks over "
        f"{', '.join(campaign.protocols)}: {len(campaign.valid)} of {len(runs)} attempts count."
    )


def _sheet(campaign: CampaignTable, folder: Path, licence: str) -> str:
    """The data sheet, for people."""
    versions = campaign.document.versions
    lines = [f"| {name} | {version} |" for name, version in sorted(versions.items()) if isinstance(version, str)]
    described = [f"- `{name}`: {text}" for name, text in FILES.items() if (folder / name).exists()]
    times = campaign.runs.get("started_at", ["unknown"])
    settings = campaign.settings
    seed = "unknown" if settings.seed is None else settings.seed
    # A campaign may be resumed with another commit of the testbed. Networks and protocols are then validated again
    # first, so the validation's entries name every commit.
    commits = dict.fromkeys(
        str(on.get("testbed", "unknown"))
        for on in (campaign.document.machine, *(entry.on for entry in kept_entries(folder)))
    )
    return "\n".join(
        [
            f"# Eyelevel campaign {campaign.name}",
            "",
            _summary(campaign),
            f"Measured from {min(times)} to {max(times)} by Eyelevel "
            f"(commit{'s' if len(commits) > 1 else ''} {listing(list(commits))}). Licence: {licence}",
            "",
            f"Sites: {', '.join(campaign.settings.sites)}. Networks: {', '.join(campaign.networks)}.",
            f"Planned: {settings.runs or 'an unknown number of'} runs of each site, network and protocol, in",
            f"blocks whose order is drawn (seed {seed}). {_machines(campaign)}",
            "",
            *_claims(folder),
            "Not in it: films, pictures, logs of browsers and servers, and the recordings of the sites, which are",
            "others' content. `campaign.json` has the SHA-256 of each recording.",
            "",
            "`make report CAMPAIGN=<this folder> INTO=<another>` of Eyelevel writes the report anew, and",
            "`make campaign PACKAGE=<this folder>` resumes the campaign, on a machine with the same versions. All",
            f"files with sizes and SHA-256 are in `{METADATA}` (RO-Crate 1.1).",
            "",
            *described,
            "- `report/`: the report, its figures and tables, and `runs.parquet`",
            f"- `{SCHEMA.name}`: the columns of `runs.csv`, with types, units and meanings",
            "",
            "| program | version |",
            "|---|---|",
            *lines,
            "",
        ]
    )


def _machines(campaign: CampaignTable) -> str:
    """A sentence that says which machines made the runs."""
    if MACHINE not in campaign.runs:
        return ""
    counts = campaign.valid[MACHINE].value_counts(sort=False)
    return f"Runs that count by machine: {', '.join(f'{name} {count}' for name, count in counts.items())}."


def _claims(folder: Path) -> list[str]:
    """The report's results on the paper's claims, as lines; empty if the report in `folder` has no such table."""
    path = folder / CLAIMS_TABLE
    if not path.is_file():
        return []
    campaign, table = load(folder), pd.read_csv(path, keep_default_na=False)
    rows = [
        f"| {one['paper']} | {one['number'] or '-'} | {one['verdict']} | {one['sentence'].partition(': ')[2]} "
        f"| {one['sites']} | {one['runs']} |"
        for one in records(table)
    ]
    return [
        "## The paper's claims",
        "",
        balance_of(table, len(campaign.valid), campaign.valid["site"].nunique()),
        "The paper is Wolsing et al., ANRW 2019; `analysis/paper/claims.py` of Eyelevel declares each claim and test.",
        "",
        "| the paper says | its number | today | here | sites | runs |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "## The folder",
        "",
    ]
