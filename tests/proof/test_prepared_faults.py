"""Whatever process of a prepared load is killed: its turn comes to a reason, or to a load, and nothing stays behind.

Takes about a minute for each server.
"""

import os
import signal
from pathlib import Path

import pytest
from support.processes import awaited_descendants, still_there
from support.programs import is_called, server_programs

from measure.campaign.method import PAGES, is_made
from measure.run.setting import Circumstances, Loading, Setting
from record.demo import generate
from record.site import write_site
from servers.registry import require_served
from tuning import networks, protocols
from tuning.protocols import Protocol

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads(group="faults")]

# How programs are called in /proc/PID/comm, which has 15 letters.
VICTIMS = ("unshare", "python", "mm-net", "dnsmasq", "Xvfb", "node", "chromedriver", "chromium")
TCP = protocols.load()["tcp"]


@pytest.mark.parametrize(
    ("protocol", "victim"), [*(pytest.param(TCP, victim, id=victim) for victim in VICTIMS), *server_programs()]
)
def test_a_prepared_load_of_which_a_process_is_killed_is_an_attempt_and_no_more(
    protocol: Protocol, victim: str, tmp_path: Path
) -> None:
    site, folder = write_site(generate("demo-light"), tmp_path / "site"), tmp_path / "runs" / "1-1"
    folder.mkdir(parents=True)
    # It must have its browser within this limit, on a busy machine, too.
    loading = Loading(filmed=False, quiet_ms=500, limit_s=200)
    setting = Setting(site, networks.load()["dsl"], require_served([protocol])[0], loading)
    load = PAGES.prepare(setting, None, folder)
    assert load
    below = awaited_descendants(os.getpid(), lambda names: "chromium" in names and victim_in(names, victim))
    os.kill(next(pid for pid, name in below if victim_in([name], victim)), signal.SIGKILL)
    PAGES.make(setting, Circumstances(1, "here"), folder, preparation=load)
    assert is_made(folder)
    assert still_there([pid for pid, _ in below]) == []


def victim_in(names: list[str], victim: str) -> bool:
    """Whether `victim` is among `names`; Python is called by its version."""
    return any(is_called(name, victim) for name in names)
