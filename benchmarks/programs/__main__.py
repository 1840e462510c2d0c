"""`python -m benchmarks.programs`: the cost of a run with each installed server and browser.

The cost is the seconds beyond the page's load and quiet time, as in `benchmarks.campaign`, and the peak memory of the
server's and the browser's processes in one further load, which is not timed.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import click
import pandas as pd
import psutil

from base.errors import EyelevelError, reports_errors
from benchmarks.campaign.__main__ import TimedSlot, ours
from benchmarks.memory import pss_bytes
from browsers.contract import Browser
from browsers.registry import all_browsers
from measure.host.exclusive import measuring_alone
from measure.interop.matrix import missing_program, stock_protocol
from measure.interop.tests import VERSIONS
from measure.run.browser import refusal
from measure.run.load import Load
from measure.run.setting import Loading, Setting
from record import collection
from servers.contract import Server
from servers.registry import all_servers, require_served
from tuning import networks
from tuning.settings import choose_one

SAMPLE_S = 0.2


class Memory:
    """The peak memory (bytes) of a server's and of a browser's processes among this process's descendants."""

    def __init__(self, server: Server, browser: Browser) -> None:
        self.server_bytes = self.browser_bytes = 0
        self._server, self._browser = server, browser
        self._over = Event()

    def watch(self) -> None:
        """Sample the memory until `end` is called."""
        while not self._over.wait(SAMPLE_S):
            below = psutil.Process(os.getpid()).children(recursive=True)
            self.server_bytes = max(self.server_bytes, _sum_bytes(below, self._serves))
            self.browser_bytes = max(self.browser_bytes, _sum_bytes(below, self._browses))

    def end(self) -> None:
        """Make `watch` return."""
        self._over.set()

    def _serves(self, process: psutil.Process) -> bool:
        # The kernel keeps 15 letters of a process's name; uwsgi's ends differently.
        return any(process.name().startswith(program[:15]) for program in self._server.programs)

    def _browses(self, process: psutil.Process) -> bool:
        return self._browser.part(" ".join(process.cmdline())) is not None


def _sum_bytes(processes: list[psutil.Process], is_counted: Callable[[psutil.Process], bool]) -> int:
    total_bytes = 0
    for process in processes:
        try:
            total_bytes += pss_bytes(process) if is_counted(process) else 0
        except psutil.NoSuchProcess:
            continue
    return total_bytes


def memory(setting: Setting, server: Server, browser: Browser) -> Memory:
    """The memory of `server` and `browser` in a load of `setting`. Raises EyelevelError when the load fails."""
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary, Load(setting, Path(temporary)) as load:
        most = Memory(server, browser)
        watching = Thread(target=most.watch)
        watching.start()
        try:
            failure = load.make()
        finally:
            most.end()
            watching.join()
    if failure:
        raise EyelevelError(failure)
    return most


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--site", default="demo-light", show_default=True, help="A recorded site.")
@click.option("--net", default="dsl", show_default=True, help="A network.")
@click.option("--runs", default=5, show_default=True, help="Timed loads with each server and browser.")
@click.option("--server", help="One server alone.")
@click.option("--browser", "browser_name", help="One browser alone.")
def main(site: str, net: str, runs: int, server: str | None, browser_name: str | None) -> None:
    """Print seconds per run beyond load and quiet time, and memory, with each server and each browser.

    Example: python -m benchmarks.programs --site demo-light --runs 5
    """
    recorded, network = collection.load_site(site), choose_one("network", net, networks.load())
    rows = []
    with measuring_alone():
        for browser in all_browsers().values():
            if browser_name not in (None, browser.name) or missing_program(browser):
                continue
            slot = TimedSlot(browser.name)
            for one in all_servers().values():
                for version in VERSIONS:
                    protocol = stock_protocol(one, version)
                    if server not in (None, one.name) or not protocol or missing_program(one):
                        continue
                    fault = one.refusal(protocol) or one.network_refusal(protocol, network)
                    if fault := fault or refusal(browser, protocol, recorded):
                        click.echo(f"{protocol.name} with {browser.name}: {fault}")
                        continue
                    (protocol,) = require_served([protocol])
                    setting = Setting(recorded, network, protocol, Loading(browser=browser.name))
                    overhead_s, phases = ours(setting, runs, 1, slot)
                    most = memory(setting, one, browser)
                    rows.append(
                        {
                            "browser": browser.name,
                            "server": one.name,
                            "protocol": protocol.name,
                            "overhead_s": overhead_s,
                            "preparation_s": phases["(preparation in all)"],
                            "server_mb": most.server_bytes / 1e6,
                            "browser_mb": most.browser_bytes / 1e6,
                        }
                    )
                    click.echo("  ".join(f"{name} {value}" for name, value in rows[-1].items()))
    if not rows:
        raise EyelevelError("no server or browser of these is set up")
    click.echo(f"\n{pd.DataFrame(rows).to_string(index=False, float_format='%.2f')}")


if __name__ == "__main__":
    reports_errors(main)()
