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
from jinja2 import Environment

from analysis.paper.claims import balance_of
from analysis.runs import MACHINE, CampaignTable, load, records
from analysis.samples import starts_of
from analysis.text import listing
from base.errors import EyelevelError
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from dataset.last_frames import all_digests, write_digests
from dataset.metrics import METRICS
from dataset.package import FILES, METADATA
from dataset.reading import read_bytes
from dataset.schema import SCHEMA, schema
from dataset.table import RUNS, read_table, require_document
from dataset.validation import kept_entries
from dataset.verdicts import looked_at

SHEET, TEMPLATE = "README.md", Path(__file__).with_name("package.md.j2")
# Reports have this table if the campaign has numbers of the paper (`analysis.report.sections.paper.is_of_paper`).
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
        present, rows = read_table(folder)
        write_digests(draft, all_digests(folder, (row.folder for row in rows)))
        write_json(draft / SCHEMA.name, schema(present, require_document(folder).columns))
        # So the report is that of a package, which names no command of the campaign's own folder.
        write_json(draft / METADATA, {})
        report(draft)
        (draft / METADATA).unlink()
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
    starts = starts_of(campaign.runs).dropna()
    measured_until = starts.max() if len(starts) else datetime.now(UTC)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Eyelevel campaign {campaign.name}",
        "description": _summary(campaign),
        "datePublished": measured_until.date().isoformat(),
        "license": {"@id": licence},
        "hasPart": [{"@id": file["@id"]} for file in files],
        "variableMeasured": list(campaign.metrics),
        "mentions": {"@id": "#measurement"},
    }
    graph = [
        {"@id": METADATA, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": CONTEXT}},
        root,
        {
            "@id": "#measurement",
            "@type": "CreateAction",
            "name": f"Measurement with seed {campaign.settings.seed}",
            "instrument": {"@id": "#eyelevel"},
            "result": {"@id": RUNS},
        },
        {"@id": "#eyelevel", "@type": "SoftwareApplication", "name": "Eyelevel"},
        {"@id": licence, "@type": "CreativeWork", "name": licence, "description": "The licence of the numbers"},
        *files,
    ]
    return {"@context": [f"{CONTEXT}/context", FURTHER_TERMS], "@graph": graph}


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
        f"Loads of {runs['site'].nunique()} sites on {runs['network'].nunique()} networks over "
        f"{', '.join(campaign.protocols)}: {len(campaign.valid)} of {len(runs)} attempts count."
    )


def _sheet(campaign: CampaignTable, folder: Path, licence: str) -> str:
    """The data sheet, for people. It has the report's results on the paper's claims if the report in `folder` has."""
    path = folder / CLAIMS_TABLE
    claims = pd.read_csv(path, keep_default_na=False) if path.is_file() else pd.DataFrame()
    # A campaign may be resumed with another commit of the testbed. Networks and protocols are then validated again
    # first, so the validation's entries name every commit.
    measured_on = (campaign.document.machine, *(entry.on for entry in kept_entries(folder)))
    machines = campaign.valid[MACHINE].value_counts(sort=False) if MACHINE in campaign.runs else {}
    versions = campaign.document.versions
    of_films = [metric.name for metric in METRICS if metric.from_film and metric.name in campaign.runs]
    filmed = campaign.valid[campaign.valid[of_films].notna().any(axis=1)].get("folder", pd.Series(dtype=str))
    template = Environment(trim_blocks=True, keep_trailing_newline=True).from_string(TEMPLATE.read_text())
    return template.render(
        campaign=campaign,
        settings=campaign.settings,
        summary=_summary(campaign),
        times=campaign.runs.get("started_at", ["unknown"]),
        commits=list(dict.fromkeys(str(on.get("testbed", "unknown")) for on in measured_on)),
        licence=licence,
        films=len(filmed),
        looked_at=int(filmed.isin(looked_at(folder)).sum()),
        machines=[f"{name} {count}" for name, count in machines.items()],
        balance=balance_of(claims, len(campaign.valid), campaign.valid["site"].nunique()) if len(claims) else "",
        claims=records(claims),
        files={name: text for name, text in FILES.items() if (folder / name).exists()},
        versions={name: version for name, version in versions.items() if isinstance(version, str)},
        metadata=METADATA,
        schema=SCHEMA.name,
        listing=listing,
    )
