"""`eyelevel answer` from a URL to the sentence; the demo origins stand in for the live web."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import namespaced
from base.places import PROJECT
from dataset.table import read_rows
from measure.campaign.results import require_no_others
from measure.sites.completeness import read
from record.site import Site
from servers.certificates import machine_ca_certificate

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]

URL, NAME = "https://www.demo-light.example/", "demo-light.example"


def test_an_answer_from_a_url_goes_on_where_it_was(tmp_path: Path) -> None:
    # Programs of other users read from it.
    tmp_path.chmod(0o755)
    options = ["--net", "dsl", "--sites-folder", str(tmp_path / "sites"), "--results", str(tmp_path / "results")]
    options += ["--no-validate", "--plain", "--allow-private", "--origin-ca", str(machine_ca_certificate())]
    first = answered(tmp_path / "first", [URL, *options, "--runs", "1"])
    folder = tmp_path / "results" / f"answer-{NAME}"
    assert f"on DSL (1 pair of loads cannot tell).\n{folder / 'answer' / 'index.html'}\n" in first
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
    # A typical load over each protocol, in eight pictures.
    assert page.count('src="data:image/jpeg;base64,') == 16
    assert "Differences between the protocols" in page
    assert (folder / "report" / "index.html").exists()
    # The answer names the properties of the servers that it ignores, and the command that takes them into account.
    (command,) = re.findall(
        r"With it: <code>make answer SITE=\S+ (THINK_TIME=recorded.*?) CAMPAIGN=(\S+?)</code>", page
    )
    variables, name = command
    further = [word for value in variables.split() for word in option_of(value)]
    recorded = ["--site", NAME, "--runs", "1", "--campaign", name, *further, *options]
    assert "\nFor demo-light.example, " in answered(tmp_path / "third", recorded)
    as_recorded = (tmp_path / "results" / name / "answer" / "index.html").read_text()
    assert "Servers took as long to answer as the recorded ones took." in as_recorded
    assert "When the page was recorded" not in as_recorded
    # A campaign that began without this option is not resumed with it, which is reported before any load.
    refused = answered(tmp_path / "refused", [URL, *options, "--think-time", "recorded"], status=1)
    assert f"the campaign answer-{NAME} was begun with other settings: think_time was absent" in refused
    assert "validate" not in refused


def option_of(variable: str) -> tuple[str, str]:
    """A variable of make and its value, as an option."""
    name, _, value = variable.partition("=")
    return f"--{name.lower().replace('_', '-')}", value


def answered(folder: Path, arguments: list[str], status: int = 0) -> str:
    """The output of `eyelevel answer` on the demo page, whose servers have their files in `folder`. Asserts that the
    command's exit status is `status`."""
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
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + (done.stderr if status else "")
