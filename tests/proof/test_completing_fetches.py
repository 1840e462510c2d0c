"""Completing our own recordings: missing exchanges are fetched from where the page was recorded."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from support.lossy_site import LOST

from base.namespaces import namespaced
from base.places import PROJECT
from measure.sites import completeness
from measure.sites.completeness import Completeness
from record.http1 import Response
from record.site import Site
from servers.certificates import machine_ca_certificate

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="completing")]

ORIGIN = PROJECT / "tests" / "clients" / "origin.py"

# Run among the servers of origin.py: record the page, remove some exchanges, close the rest.
PROGRAM = """
import subprocess, sys
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from support.lossy_site import lose
sites, ca = sys.argv[1:3]
def run(*command): subprocess.run([sys.executable, "-m", "eyelevel", *command, "--origin-ca", ca], check=True)
# The addresses of these servers are not public. Recording a page from them is allowed; fetching needs --allow-private.
run("record", "https://origin.example/", "--into", sites)
lose(Path(sites) / "origin.example")
run("close", "origin.example", "--sites-folder", sites, "--loads", "1", "--proto", "tcp", "--allow-private")
"""


@dataclass(frozen=True)
class Closed:
    """The responses that were recorded and removed, the closed site, its completeness, and the output."""

    lost: dict[str, Response]
    site: Site
    completeness: Completeness
    said: str


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Closed:
    folder = tmp_path_factory.mktemp("origin")
    command = [*map(str, namespaced("net", "mount")), sys.executable]
    command += [str(ORIGIN), str(folder), sys.executable, "-c", PROGRAM]
    command += [str(folder / "sites"), str(machine_ca_certificate()), str(PROJECT / "tests")]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    site, whole = Site.load(folder / "sites" / "origin.example"), Site.load(folder / "whole")
    result = completeness.read(site)
    assert result, said
    lost = {e.url: whole.recorded(e).response for e in whole.exchanges if e.url in LOST}
    assert set(lost) == set(LOST)
    return Closed(lost, site, result, said)


def test_what_was_missing_is_fetched_and_stored_as_it_was(closed: Closed) -> None:
    assert set(closed.completeness.fetched) == set(LOST), closed.said
    again = {e.url: closed.site.recorded(e).response for e in closed.site.exchanges if e.url in LOST}
    for url, response in closed.lost.items():
        assert (again[url].status, again[url].body) == (response.status, response.body)
        assert again[url].header("content-encoding") == response.header("content-encoding")


def test_what_could_not_be_fetched_is_told_by_url(closed: Closed) -> None:
    missed = {missed.url for missed in closed.completeness.missed}
    assert not missed & set(LOST)
    assert "https://nowhere.example/" in missed
    assert "GET https://nowhere.example/, requested by https://www.origin.example" in closed.said


def test_the_site_keeps_its_servers_and_is_the_one_that_is_known(closed: Closed) -> None:
    by_host = closed.site.addresses
    assert all(len(addresses) == 1 for addresses in by_host.values())
    assert closed.completeness.site_sha256 == completeness.digest(closed.site)
    assert json.loads((closed.site.folder / "site.json").read_text())["recorder"]["tool"].startswith("mitmproxy")
