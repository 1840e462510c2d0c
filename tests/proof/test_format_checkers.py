"""Other projects' programs accept our files: py-wacz and cdxj-indexer our WACZ files, rocrate and its validator our
RO-Crates."""

import json
import os
import subprocess
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support import known_campaigns
from support.material import recording_names, recording_path
from support.needs import FORMAT_CHECKERS
from support.recordings import zipped

from analysis import hypotheses
from analysis.report.write import write_report
from base.places import PROJECT
from dataset.package import METADATA
from eyelevel.package import write_package
from record.demo import generate
from record.formats import read_recording, wacz
from record.site import Recording, write_site

pytestmark = pytest.mark.needs_format_checkers

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
# Properties that a crate should have, but that only its publisher knows.
UNKNOWN_TO_US = {"author", "publisher"}
DEMO = "demo-light"
FIELDS = ("url", "status", "length", "offset", "digest", "filename")


def checked(program: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The completed run of a checker, with its output."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tests"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [FORMAT_CHECKERS / program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def recording(name: str) -> Recording:
    return generate(name) if name == DEMO else read_recording(recording_path(name))


@pytest.mark.parametrize("name", [DEMO, *recording_names()])
def test_a_site_that_was_exported_is_a_wacz_to_its_own_library(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.wacz"
    wacz.write(write_site(recording(name), tmp_path / "site"), file)
    done = checked("wacz", "validate", "--file", file)
    assert done.returncode == 0 and "the passed WACZ is valid" in done.stdout, done.stdout + done.stderr
    with zipfile.ZipFile(file) as package:
        archive = tmp_path / "data.warc.gz"
        archive.write_bytes(package.read("archive/data.warc.gz"))
        ours = package.read("indexes/index.cdxj").decode().splitlines()
    theirs = checked("cdxj-indexer", "--sort", archive).stdout.splitlines()
    assert sorted(map(entry, ours)) == sorted(map(entry, theirs))
    assert len(ours) > 0


def entry(line: str) -> tuple[str, ...]:
    """The key, the time, and the place of the response in a line of an index."""
    key, time, text = line.split(" ", 2)
    fields = json.loads(text)
    return (key, time, *(str(fields.get(name)) for name in FIELDS))


def test_what_is_no_wacz_is_refused_by_its_own_library(tmp_path: Path) -> None:
    file = tmp_path / "x.wacz"
    wacz.write(write_site(generate(DEMO), tmp_path / "site"), file)
    with zipfile.ZipFile(file) as package:
        members = {name: package.read(name) for name in package.namelist()}
    file.write_bytes(zipped({**members, "pages/pages.jsonl": b"{}\n"}))
    assert "hash" in checked("wacz", "validate", "--file", file).stdout


def packaged(folder: Path) -> Path:
    """The package of a campaign, with its report."""
    known_campaigns.write(folder / "late", "late")
    question = hypotheses.load(hypotheses.DECLARED)
    return write_package(folder / "late", folder / "crate", LICENCE, lambda of: write_report(of, [], question))


def crate_of(folder: Path) -> Mapping[str, Any]:
    """The output of the programs about the crate in `folder`."""
    done = checked("python", "-m", "support.check_crate", folder)
    assert done.returncode == 0, done.stderr
    contents: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return contents


def test_a_package_is_an_ro_crate_to_its_validator_and_library(tmp_path: Path) -> None:
    package = packaged(tmp_path)
    crate = crate_of(package)
    unexpected = [text for _, text in crate["issues"] if not any(name in text for name in UNKNOWN_TO_US)]
    assert "\n".join(unexpected) == ""
    assert (crate["name"], crate["licence"]) == ("Eyelevel campaign late", LICENCE)
    files = [path for path in package.rglob("*") if path.is_file() and path.name != METADATA]
    assert crate["files"] == {str(path.relative_to(package)): sha256(path.read_bytes()).hexdigest() for path in files}
    document = json.loads((package / METADATA).read_text())
    document["@context"] = document["@context"][0]
    document["@graph"] = [one for one in document["@graph"] if one["@id"] != "runs.csv"]
    (package / METADATA).write_text(json.dumps(document))
    assert "REQUIRED" in {severity for severity, _ in crate_of(package)["issues"]}, "the validator finds faults"
