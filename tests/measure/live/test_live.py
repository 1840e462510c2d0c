"""A page is loaded live on a network: the kept data are those that the network and its servers produced."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import namespaced
from base.places import PROJECT
from dataset.metrics import time_names
from measure.live import read_live
from record.demo import generate
from record.site import write_site
from replay.shells.ours import shell
from tuning import networks

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads]

LTE = networks.load()["lte"]
LOAD = """
import sys
from pathlib import Path
from measure.host.canary import Canary
from measure.live import loads
from record.live import write_live
from record.site import Site
from servers.certificates import machine_ca_certificate

# A canary takes as much of the processor as the load; test_live_addresses.py has one.
loads.time_canary = lambda _: Canary(50.0, 800.0)
site = Site.load(Path(sys.argv[1]))
write_live(loads.load_live(site, 1, origin_ca=machine_ca_certificate()), site.folder)
"""


def test_a_live_load_is_kept_with_its_protocols_and_round_trips(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # the servers and the browser are other users
    # A live load goes to the addresses at which the page was recorded; here, the generated page's servers have these.
    site = write_site(generate("demo-light", 1), tmp_path / "site")
    origin = [str(PROJECT / "tests" / "clients" / "demo_origin.py"), str(tmp_path), "demo-light", "1"]
    inside = [*shell(LTE, seed=1), "--", sys.executable, "-c", LOAD, str(site.folder)]
    command = [*namespaced("net", "mount"), sys.executable, *origin, *inside]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    live = read_live(site)
    assert live and len(live.loads) == 1
    assert set(live.loads[0].metrics) == set(time_names())
    assert live.loads[0].canary_ms == {"cpu": 50.0, "page": 800.0}
    assert set(live.requests) == {"h2"} and live.requests["h2"] > 1
    # A handshake of TCP, one of TLS, and a request.
    assert live.loads[0].metrics["plt"] > 3 * LTE.min_rtt_ms
    assert set(live.round_trips_ms) == set(site.recorded_ips.values())
    # The emulator is never early, and what made the machine late made the load late, too.
    shortest_ms = min(live.round_trips_ms.values())
    assert LTE.min_rtt_ms - 0.01 <= shortest_ms < live.loads[0].metrics["plt"] - 2 * LTE.min_rtt_ms
