"""A package of a campaign has its files, with correct checksums, and none of its runs' files."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest
from support import known_campaigns

from analysis.runs import load
from base.errors import EyelevelError
from dataset.package import METADATA, is_package
from dataset.schema import schema
from dataset.table import read_rows, read_table, require_document, write_document
from dataset.validation import ValidationEntry, write_entries
from dataset.verdicts import PERSON, Verdict, add_verdict
from eyelevel.package import CLAIMS_TABLE, write_package


def test_a_package_can_be_read_and_its_checksums_are_true(tmp_path: Path) -> None:
    campaign, into = tmp_path / "late", tmp_path / "late-package"
    known_campaigns.write(campaign, "late")
    (campaign / "runs").mkdir(exist_ok=True)
    (campaign / "runs" / "film.mp4").write_bytes(b"film")
    write_package(campaign, into, "https://example.org/licence", lambda folder: (folder / "report").mkdir())
    files = {entry["@id"]: entry for entry in json.loads((into / METADATA).read_text())["@graph"] if "sha256" in entry}
    there = {str(path.relative_to(into)) for path in into.rglob("*") if path.is_file()}
    assert set(files) | {METADATA} == there
    assert {"runs.csv", "campaign.json", "runs.schema.json", "README.md"} <= set(files)
    for name, entry in files.items():
        content = (into / name).read_bytes()
        assert (entry["sha256"], int(entry["contentSize"])) == (sha256(content).hexdigest(), len(content))
    assert load(into).runs.equals(load(campaign).runs)
    schema = json.loads((into / "runs.schema.json").read_text())
    assert tuple(field["name"] for field in schema["fields"]) == read_table(campaign)[0]


def test_the_schema_of_an_older_campaign_has_its_columns_alone() -> None:
    described = {"clock_mhz": {"name": "clock_mhz", "type": "number"}}
    fields = schema(("site", "clock_mhz", "of_an_older_version"), described)["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [
        ("site", "string"),
        ("clock_mhz", "number"),
        ("of_an_older_version", "any"),
    ]


def test_a_report_is_written_as_that_of_a_package(tmp_path: Path) -> None:
    """A reader writes it again from the package, and both are to be the same."""
    campaign = tmp_path / "late"
    known_campaigns.write(campaign, "late")
    written_as: list[bool] = []
    write_package(
        campaign, tmp_path / "p", "https://example.org/", lambda folder: written_as.append(is_package(folder))
    )
    assert written_as == [True]


def test_a_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    campaign, into = tmp_path / "late", tmp_path / "mine"
    known_campaigns.write(campaign, "late")
    into.mkdir()
    (into / "letter").write_text("mine")
    with pytest.raises(EyelevelError, match="so it is not replaced"):
        write_package(campaign, into, "https://example.org/licence", lambda folder: (folder / "report").mkdir())
    assert [path.name for path in into.iterdir()] == ["letter"]


@pytest.mark.parametrize("name", ["plan.csv", "hypotheses.toml", "verdicts.jsonl"])
def test_a_package_has_no_file_that_a_link_in_the_campaign_leads_to(name: str, tmp_path: Path) -> None:
    campaign, into = tmp_path / "late", tmp_path / "late-package"
    known_campaigns.write(campaign, "late")
    (tmp_path / "key").write_text("SECRET-FILE-CONTENT")
    (campaign / name).unlink(missing_ok=True)
    (campaign / name).symlink_to("../key")
    with pytest.raises(EyelevelError, match=f"{name} cannot be read: it is a symbolic link"):
        write_package(campaign, into, "https://example.org/licence", lambda folder: (folder / "report").mkdir())
    assert not into.exists()


def test_the_data_sheet_says_what_the_report_says_of_the_papers_claims(tmp_path: Path) -> None:
    def report(folder: Path) -> None:
        (folder / CLAIMS_TABLE.parent).mkdir(parents=True)
        row = {"paper": "QUIC is faster.", "number": "DSL -9 %", "verdict": "holds", "sentence": "Holds: it is -8 %."}
        pd.DataFrame([{**row, "sites": 12, "runs": 96}]).to_csv(folder / CLAIMS_TABLE, index=False)

    campaign, into = tmp_path / "late", tmp_path / "late-package"
    known_campaigns.write(campaign, "late")
    sheet = (write_package(campaign, into, "https://example.org/licence", report) / "README.md").read_text()
    assert "1 of 1 claim of the paper holds in this campaign, 0 do not hold, and 0 are not decided" in sheet
    assert "| QUIC is faster. | DSL -9 % | holds | it is -8 %. | 12 | 96 |" in sheet
    assert "Runs that count by machine: bench " in sheet
    films = int(re.findall(r"A person looked at 0 of the (\d+) films of runs that count", sheet)[0])
    looked = [row for row in read_rows(campaign) if row.valid][:3]
    for row in looked:
        add_verdict(campaign, Verdict.of(row, row.reason, by=PERSON, valid=True))
    sheet = (write_package(campaign, into, "https://example.org/licence", report) / "README.md").read_text()
    assert f"A person looked at 3 of the {films} films of runs that count" in sheet


def test_the_data_sheet_names_every_commit_that_measured(tmp_path: Path) -> None:
    campaign = tmp_path / "late"
    known_campaigns.write(campaign, "late")
    document = require_document(campaign)
    write_document(campaign, replace(document, machine={**document.machine, "testbed": "first"}))
    commits = ["first", "second", "second"]
    write_entries(
        campaign, [ValidationEntry("then", {"host": "here", "testbed": commit}, (), (), {}) for commit in commits]
    )
    package = write_package(
        campaign, tmp_path / "late-package", "https://example.org/licence", lambda folder: (folder / "report").mkdir()
    )
    assert "by Eyelevel (commits first and second). Licence" in (package / "README.md").read_text()
