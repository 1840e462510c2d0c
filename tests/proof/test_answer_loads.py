"""`eyelevel answer` from a URL to the sentence: the demo origins stand for the live web."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import namespaced
from base.places import PROJECT
from measure.campaign.results import require_no_others
from measure.completeness import read
from measure.table import read_rows
from record.site import Site
from servers.certificates import machine_ca_certificate

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.alone]

URL, NAME = "https://www.demo-light.example/", "demo-light.example"


def test_an_answer_from_a_url_goes_on_where_it_was(tmp_path: Path) -> None:
    # Other users' programs read from it.
    tmp_path.chmod(0o755)
    options = ["--net", "dsl", "--sites", str(tmp_path / "sites"), "--results", str(tmp_path / "results")]
    options += ["--no-validate", "--plain", "--allow-private", "--origin-ca", str(machine_ca_certificate())]
    first = answered(tmp_path / "first", [URL, *options, "--runs", "1"])
    folder = tmp_path / "results" / f"answer-{NAME}"
    assert f"behind DSL (1 pair of loads cannot tell).\n{folder / 'answer' / 'index.html'}\n" in first
    site = Site.load(tmp_path / "sites" / NAME)
    assert site.url == URL
    assert read(site) is not None
    require_no_others(folder)
    again = answered(tmp_path / "again", [URL, *options, "--runs", "2"])
    assert "[1/5] record: demo-light.example was recorded before" in again
    assert "[2/5] close: done on " in again
    valid = [row for row in read_rows(folder) if row.valid]
    assert sorted((row.protocol, row.run) for row in valid) == sorted((p, n) for p in ("quic", "tcp+") for n in (1, 2))
    assert "\nFor demo-light.example, " in again
    page = (folder / "answer" / "index.html").read_text()
    assert "<h1>For demo-light.example, " in page
    assert (folder / "report" / "index.html").exists()


def answered(folder: Path, arguments: list[str]) -> str:
    """What `eyelevel answer` prints among the demo page's servers, which have `folder`."""
    folder.mkdir(mode=0o755)
    origin = [str(PROJECT / "tests" / "clients" / "demo_origin.py"), str(folder), "demo-light", "1"]
    command = [
        *map(str, namespaced("net", "mount")),
        sys.executable,
        *origin,
        sys.executable,
        "-m",
        "eyelevel",
        "answer",
    ]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [*command, *arguments], env=environment, cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
