"""A page that is loaded live reaches only the public servers from which it was recorded, whatever it tries.

`clients/neighbours.py` is the machine: it makes networks that contain its web and its neighbours.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from clients.neighbours import ATTEMPTS, FEW_ATTEMPTS, REBOUND, SECURE_ATTEMPTS

from base.namespaces import namespaced
from base.places import PROJECT
from measure.live import read_live
from measure.live.loads import settings_of
from record.site import Site
from servers.certificates import machine_ca_certificate
from tuning import networks

NEIGHBOURS = PROJECT / "tests" / "clients" / "neighbours.py"


@pytest.mark.needs_namespaces
@pytest.mark.loads
def test_a_page_that_is_loaded_live_reaches_no_address_that_is_not_public(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # the browser is another user
    command = [*namespaced("net", "mount"), sys.executable, NEIGHBOURS, tmp_path, sys.executable, "-m", "eyelevel"]
    command += ["record", "https://evil.example/", "--into", tmp_path, "--live", "1", "--net", "lte"]
    command += ["--origin-ca", machine_ca_certificate()]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "arrivals").read_text() == ""
    # The page made all its attempts twice: while it was recorded, when the proxy answers in place of others, and when
    # it was loaded live.
    requests = (tmp_path / "requests").read_text().splitlines()
    outcomes = [json.loads(line.partition("HTTP/1.1 ")[2]) for line in requests if " POST /done " in line]
    assert len(outcomes) == 2
    attempts = {f"fetch {url}" for url in (*ATTEMPTS, *SECURE_ATTEMPTS)}
    attempts |= {f"{way} {url}" for way in ("WebSocket", "WebTransport") for url in FEW_ATTEMPTS}
    assert outcomes[1] == {**dict.fromkeys(attempts, "refused"), "WebRTC ": "reached"}
    # A name that has pointed to a neighbour since the recording still leads to the recorded address.
    assert sum(line.startswith(f"{REBOUND} GET / ") for line in requests) >= 2
    site = Site.load(tmp_path / "evil.example")
    assert set(site.addresses) == {"evil.example", REBOUND}
    live = read_live(site)
    assert live and set(live.round_trips_ms) == set(site.recorded_ips.values())
    (load,) = live.loads
    assert all(load.canary_ms[task] > 1 for task in ("cpu", "page"))
    assert (live.network, live.network_settings) == ("lte", settings_of(networks.load()["lte"]))
