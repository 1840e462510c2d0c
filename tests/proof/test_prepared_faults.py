"""If any process of a prepared load is killed, its turn ends with a reason or a load, and nothing remains.

A load that is measured at the same time is not affected, and vice versa. Takes about five minutes, and one more for
each server.
"""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.leaks import own_groups
from support.processes import awaited_descendants, descendants, still_there
from support.programs import is_called, server_programs

from browsers.browsertime.configuration import QUIET_SIGN_MS
from dataset.table import Run
from measure.campaign.method import PAGES, is_made
from measure.host.idle_priority import idle_priority
from measure.run.load import Load, Moments
from measure.run.setting import Circumstances, Loading, Setting
from record.demo import generate
from record.site import write_site
from servers.registry import require_served
from tuning import networks, protocols
from tuning.protocols import Protocol

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads(group="faults")]

# The names of programs in /proc/PID/comm, which keeps the first 15 letters.
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
    # The browser must be ready within this limit, also on a busy machine.
    loading = Loading(filmed=False, quiet_ms=500, limit_s=200)
    setting = Setting(site, networks.load()["dsl"], require_served([protocol])[0], loading)
    load = PAGES.prepare(setting, None, folder)
    assert load
    below = awaited_descendants(os.getpid(), lambda names: "chromium" in names and victim_in(names, victim))
    os.kill(next(pid for pid, name in below if victim_in([name], victim)), signal.SIGKILL)
    PAGES.make(setting, Circumstances(1, "here"), folder, preparation=load)
    assert is_made(folder)
    assert still_there([pid for pid, _ in below]) == []


@pytest.mark.parametrize("of_next", [False, True], ids=["of the run", "of the next"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_kill_in_the_quiet_time_ends_one_of_two_loads_and_no_more(victim: str, of_next: bool, tmp_path: Path) -> None:
    """Both loads are alive: one is measured, and the next is prepared at the same time."""
    site = write_site(generate("demo-light"), tmp_path / "site")
    loading = Loading(filmed=False, quiet_ms=QUIET_SIGN_MS + 10_000, limit_s=200)
    setting = Setting(site, networks.load()["dsl"], TCP, loading)
    folders = [tmp_path / "runs" / name for name in ("1-1", "2-1")]
    runs = [Run("site", "dsl", "tcp", number) for number in (1, 2)]
    below: dict[int, str] = {}
    for folder in folders:
        folder.mkdir(parents=True)
    with idle_priority(own_groups()) as idle, ExitStack() as ends:
        if not idle:
            pytest.skip("needs idle priority")
        loads: list[Load] = []

        def prepare_and_kill() -> bool:
            first = dict(descendants(os.getpid()))
            load = PAGES.prepare(setting, None, folders[1], idle=idle)
            assert load
            loads.append(ends.enter_context(load))

            def has_started(_names: list[str]) -> bool:
                names = [name for pid, name in descendants(os.getpid()) if pid not in first]
                return "chromium" in names and victim_in(names, victim)

            awaited_descendants(os.getpid(), has_started)
            below.update(descendants(os.getpid()))
            chosen = [pid for pid in below if (pid not in first) is of_next and victim_in([below[pid]], victim)]
            os.kill(chosen[0], signal.SIGKILL)
            return True

        here = Circumstances(1, "here")
        PAGES.make(setting, here, folders[0], moments=Moments(prepare_and_kill, lambda: loads[0].lift()))
        PAGES.make(setting, here, folders[1], preparation=loads[0])
    assert all(is_made(folder) for folder in folders)
    assert still_there(below) == []
    rows = [PAGES.judge(setting, run, 1, folder, tmp_path) for run, folder in zip(runs, folders, strict=True)]
    # The other load is not affected.
    assert rows[0 if of_next else 1].valid, rows


def victim_in(names: list[str], victim: str) -> bool:
    """Whether `victim` is among `names`; Python's name includes its version."""
    return any(is_called(name, victim) for name in names)
