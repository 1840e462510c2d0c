"""Servers, network, browser and film run on the cores of a layout, according to the kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.displays import x_display

from base.processes import pinned
from browsers.browsertime.run import film_recorder
from films.log import read_log
from record.demo import generate
from record.site import write_site
from replay import ReplaySpec, run
from tuning import networks, protocols

CORES = sorted(os.sched_getaffinity(0))
# Every process in the replay, by its name; and the number of NGINX processes.
LOOK = """
import collections, json, os, pathlib, sys
cores, processes = {}, collections.Counter()
for entry in pathlib.Path("/proc").iterdir():
    if entry.name.isdigit():
        name = (entry / "comm").read_text().strip()
        processes[name] += 1
        cores.setdefault(name, set()).update(os.sched_getaffinity(int(entry.name)))
cores["me"] = os.sched_getaffinity(0)
seen = {"nginx processes": processes["nginx"], **{name: sorted(cores) for name, cores in cores.items()}}
pathlib.Path(sys.argv[1]).write_text(json.dumps(seen))
"""

pytestmark = pytest.mark.needs_two_cores


@pytest.mark.needs_namespaces
def test_servers_network_and_browser_stay_on_their_cores(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "site")
    network, protocol = networks.load()["dsl"], protocols.load()["tcp"]
    spec = ReplaySpec(site.folder, network, protocol, server_cores=(CORES[0],), emulator_cores=(CORES[1],))
    seen = tmp_path / "cores.json"
    outcome = run(spec, [*pinned([CORES[0]]), sys.executable, "-c", LOOK, str(seen)])
    assert outcome.status == 0
    cores = json.loads(seen.read_text())
    assert cores["nginx processes"] == 1 + 1  # a worker for each core that servers may use
    assert cores["nginx"] == cores["uwsgi-core"] == [CORES[0]]
    assert cores["mm-net"] == [CORES[1]]
    assert cores["me"] == [CORES[0]]


def test_the_film_is_made_on_its_core(tmp_path: Path) -> None:
    script = film_recorder(tmp_path, [CORES[1]]) / "ffmpeg"
    # Browsertime starts it with these arguments.
    arguments: list[str | Path] = ["-hide_banner", "-video_size", "640x480", "-f", "x11grab", tmp_path / "film.mp4"]
    with x_display() as display:
        environment = {**os.environ, "DISPLAY": display}
        with subprocess.Popen(
            [script, *arguments], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr
            assert any(b"Press [q] to stop" in line for line in process.stderr)
            assert Path(f"/proc/{process.pid}/exe").resolve().name == "film-recorder"
            assert os.sched_getaffinity(process.pid) == {CORES[1]}
            process.communicate(b"q")
    assert process.returncode == 0
    log = read_log(tmp_path / "film.mp4")
    assert (log.width, log.height) == (640, 480)
