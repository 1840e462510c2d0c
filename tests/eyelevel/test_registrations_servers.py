"""A server or a browser is added by one file: these add one to a copy of the testbed, in a temporary folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT

PACKAGES = ("base", "browsers", "eyelevel", "measure", "record", "replay", "servers", "tuning")

SERVER = '''
"""NGINX under another name, with a congestion control less."""

from servers.nginx.server import Nginx


class Toy(Nginx):
    name = "toy"
    congestion_controls = ("cubic",)


SERVER = Toy()
'''

PROTOCOLS = """
[toy]
like = "tcp+"
server = "toy"

[toy-bbr]
like = "toy"
congestion_control = "bbr"
"""

BROWSER = '''
"""A browser that does not exist, and what it would leave."""

import json
from pathlib import Path

from browsers.contract import Browser, Request


class Toy(Browser):
    name = "toy"
    programs = {"true": "--version"}
    network_log = "toy.json"
    return_visit = Path("/nowhere")

    def settings(self):
        return {"toys": 1}

    def browsertime_options(self, page, protocol, connection_options, results):
        return {"browser": "toy", "url": page.url}

    def trust(self, certificate, home):
        pass

    def keep_network_log(self, results, folder):
        pass

    def read_requests(self, folder):
        return [Request(**one) for one in json.loads((folder / self.network_log).read_text())]

    def screenshot_command(self, url, picture):
        return ["cp", "/etc/hostname", picture]


BROWSER = Toy()
'''

BROWSER_USED = """
import json, pathlib, sys
from browsers.browsertime import configuration
from browsers.registry import all_browsers, browser_named, browser_of
from measure.host.canary import time_canary
from measure.host.machine import versions
from measure.run.evidence import read_evidence
folder = pathlib.Path(sys.argv[1])
request = {"url": "u", "method": "GET", "main_frame": True, "by_browser": False, "protocol": "h3"}
(folder / "toy.json").write_text(json.dumps([request]))
assert sorted(all_browsers()) == ["chromium", "toy"], all_browsers()
assert configuration.settings(browser_named("toy"), 1)["toys"] == 1
assert browser_of(folder).name == "toy"
assert [request.protocol for request in read_evidence(folder, filmed=False).requests] == ["h3"]
assert "true" in versions([], "toy") and "chromium" not in versions([], "toy")
print("ok")
"""


@pytest.fixture
def testbed(tmp_path: Path) -> Path:
    """A copy of the testbed's Python."""
    copy = tmp_path / "testbed"
    for package in PACKAGES:
        shutil.copytree(PROJECT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def run(testbed: Path, *arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=testbed,
        env={**os.environ, "PYTHONPATH": str(testbed), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.needs_root
@pytest.mark.loads
def test_a_server_is_one_file_and_serves_the_protocols_that_name_it(testbed: Path, tmp_path: Path) -> None:
    (testbed / "servers" / "toy.py").write_text(SERVER)
    tuning = tmp_path / "tuning"
    tuning.mkdir()
    (tuning / "protocols.toml").write_text(PROTOCOLS)
    replay = ("-m", "eyelevel", "replay", "--site", "demo-light", "--net", "dsl", "--proto")
    url = "https://www.demo-light.example/"
    fetch = ("curl", "-sSo", "/dev/null", "-w", "%{http_version} %{http_code}", url)
    ended = run(testbed, *replay, "toy", "--", *fetch, EYELEVEL_TUNING=str(tuning))
    assert ended.stdout == "2 200", ended.stderr
    refused = run(testbed, *replay, "toy-bbr", "--", "true", EYELEVEL_TUNING=str(tuning))
    place = f"{tuning / 'protocols.toml'}: [toy-bbr]"
    assert refused.stderr == f"eyelevel: {place}: congestion_control must be one of cubic for toy, not 'bbr'\n"


def test_a_browser_is_one_file_and_is_known_by_what_it_leaves(testbed: Path, tmp_path: Path) -> None:
    (testbed / "browsers" / "toy.py").write_text(BROWSER)
    load = tmp_path / "load"
    load.mkdir()
    ended = run(testbed, "-c", BROWSER_USED, load)
    assert ended.stdout == "ok\n", ended.stderr
