"""Writes a campaign as a folder that can be cited: an RO-Crate 1.1 (docs/package.md), without films and logs.

The report in it is made of what is in the folder alone, so nothing of the recorded pages' pictures is in it.
"""

import hashlib
import mimetypes
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.runs import CampaignTable, load
from analysis.samples import starts_of
from base.errors import EyelevelError
from base.files import replacing_folder, write_json
from base.ownership import give_to_caller
from measure.table import DOCUMENT, RUNS
from measure.table_schema import SCHEMA

METADATA, SHEET = "ro-crate-metadata.json", "README.md"
CONTEXT = "https://w3id.org/ro/crate/1.1"
# Terms of schema.org that its context lacks, which came later.
FURTHER_TERMS = {"sha256": "http://schema.org/sha256"}
# What of a campaign's folder is in the package; what is not there is left out.
FILES = {
    RUNS: "All attempts at runs, a row each; runs.schema.json describes the columns",
    DOCUMENT: "Settings, versions of all programs, the machine, what the sites are",
    "plan.csv": "All runs in order, by block",
    "hypotheses.toml": "What was asked, as it was declared before the first run",
    "validation.json": "What was measured of networks and protocols before the first run",
    "verdicts.jsonl": "What was decided about attempts later",
    "given_up.json": "Sites that were given up",
}


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
            if (folder / name).is_file():
                shutil.copyfile(folder / name, draft / name)
        shutil.copyfile(SCHEMA, draft / SCHEMA.name)
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
    settings = campaign.document.settings
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
        "name": f"Measurement with seed {settings.get('seed')}",
        "instrument": {"@id": "#eyelevel"},
        "result": {"@id": RUNS},
    }
    program = {"@id": "#eyelevel", "@type": "SoftwareApplication", "name": "Eyelevel"}
    terms = {"@id": licence, "@type": "CreativeWork", "name": licence, "description": "The licence of the numbers"}
    graph = [about, root, measurement, program, terms, *files]
    return {"@context": [f"{CONTEXT}/context", FURTHER_TERMS], "@graph": graph}


def _measured_until(campaign: CampaignTable) -> str:
    """The day of the last attempt (ISO 8601); nothing when that is unknown."""
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
    return "\n".join(
        [
            f"# Eyelevel campaign {campaign.name}",
            "",
            _summary(campaign),
            f"Measured from {min(times)} to {max(times)}. Licence: {licence}",
            "",
            f"Sites: {', '.join(campaign.document.sites)}. Networks: {', '.join(campaign.networks)}.",
            "",
            "Not in it: films, pictures, logs of browsers and servers, and the recordings of the sites, which are",
            "others' content. `campaign.json` has the SHA-256 of each recording.",
            "",
            "`make report CAMPAIGN=<this folder>` of Eyelevel writes `report/` anew. All files with sizes and SHA-256",
            f"are in `{METADATA}` (RO-Crate 1.1).",
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
