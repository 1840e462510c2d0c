"""`python -m benchmarks.campaign`: seconds per run beyond the page's load and quiet time, next to stock Browsertime.

Both measure the same page in the same replay, in turn. The page's load is its page load time. Its quiet time is how
long a campaign waits before it considers the page finished; it is the same for both.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean

import click
import pandas as pd

from base.errors import EyelevelError, reports_errors
from base.files import read_json
from benchmarks.campaign.stock import RESULT
from dataset.har import navigated_s
from dataset.run_files import ATTEMPT, HAR
from dataset.table import Row, Run
from films.policy import ALL_FILMS
from measure.campaign.block import Beginning, Block, Event, measure_block
from measure.campaign.method import PAGES
from measure.campaign.preparer import Preparer
from measure.campaign.slot import Slot
from measure.campaign.store import FolderStore
from measure.host.canary import USUAL, time_canary
from measure.host.idle_priority import idle_priority_of_blocks
from measure.run.setting import Circumstances, Setting
from record import collection
from record.site import Site
from replay import ReplaySpec
from replay import run as replay
from tuning import networks, protocols
from tuning.defaults import DEFAULT_BROWSER
from tuning.settings import choose_one

PROTOCOL = "tcp"


class TimedSlot(Slot):
    """A slot that measures how long its canaries take (s), in `browser`.

    It behaves as in a campaign that has been running for a while: enough canaries have been timed already. (A new
    campaign times a canary in each of its first blocks, and later one a minute.)
    """

    def __init__(self, browser: str = DEFAULT_BROWSER) -> None:
        super().__init__([time_canary(browser) for _ in range(USUAL + 1)], browser=browser)
        self.canary_s = 0.0

    def circumstances(self, block: int, warn: Callable[[str], None], *, shared: bool = False) -> Circumstances:
        """See `Slot`."""
        began_s = time.time()
        now = super().circumstances(block, warn, shared=shared)
        self.canary_s += time.time() - began_s
        return now


def ours(setting: Setting, runs: int, blocks: int, slot: TimedSlot) -> tuple[float, "pd.Series[float]"]:
    """Measure this many blocks of `runs` runs in `slot`, one after another as in a campaign.

    Returns the overhead per valid run, and the phases (s), each per run.
    """
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        store, starts_s = FolderStore(Path(temporary)), list[float]()

        def notify(event: Event) -> None:
            if isinstance(event, Beginning):
                starts_s.append(time.time())

        place = (setting.site.name, setting.network.name, setting.protocol.name)
        all_runs = [Run(*place, number, setting.loading.browser) for number in range(1, runs * blocks + 1)]
        canaries_s, start_s = slot.canary_s, time.time()
        with idle_priority_of_blocks() as idle, Preparer(store) as preparer:
            for number in range(1, blocks + 1):
                preparer.idle = idle(lambda text: print(text, file=sys.stderr))
                runs_of_block, further = all_runs[runs * (number - 1) : runs * number], all_runs[runs * number :]
                block = Block(number, dict.fromkeys(runs_of_block, setting), PAGES, 0, ALL_FILMS)
                after = partial(_first, further, setting)
                measure_block(block, store, slot, notify, preparer, after)
        end_s, canary_s = time.time(), slot.canary_s - canaries_s
        valid = [row for row in store.rows if row.valid]
        if not valid:
            raise EyelevelError(f"no run was valid, the first for {store.rows[0].reason}")
        starts = zip(starts_s, store.rows, strict=True)
        phases = pd.DataFrame([run_phases(Path(temporary) / row.folder, start, row) for start, row in starts]).mean()
        runs_s = sum(row.seconds for row in store.rows)
        phases["canary"] = canary_s / len(store.rows)
        phases["rest of films, gates, to the disk"] = (end_s - start_s - canary_s - runs_s) / len(store.rows)
        pages_s = sum((row.metrics["plt"] or 0) / 1000 + setting.quiet_ms / 1000 for row in valid)
        return (end_s - start_s - pages_s) / len(valid), phases


def _first(runs: Sequence[Run], setting: Setting) -> tuple[Run, Setting] | None:
    return (runs[0], setting) if runs else None


def run_phases(folder: Path, start: float, row: Row) -> dict[str, float]:
    """How long each phase of one run took (s), read from the run's `folder`; its turn came at `start`."""
    quiet_s = (row.quiet_ms or 0) / 1000
    times: Mapping[str, float] = json.loads((folder / "times.json").read_text())
    navigation = navigated_s(read_json(folder / HAR))
    load_s = (row.metrics["plt"] or 0) / 1000
    preparation_s = read_json(folder / ATTEMPT)["preparation_s"] or 0.0
    return {
        "(preparation in all)": preparation_s + times["ready"] - start,
        "preparation, from the run's turn on": max(0.0, times["ready"] - start),
        "idle processors": times["begin"] - max(times["ready"], start),
        "begin to navigation": navigation - times["begin"],
        "load": load_s,
        "quiet time": quiet_s,
        "browser's end, HAR": times["browsertime_end"] - navigation - load_s - quiet_s,
        "packing": times["visit_end"] - times["browsertime_end"],
        "end of the replay": start + row.seconds - times["visit_end"],
    }


def stock(site: Site, setting: Setting, runs: int) -> float:
    """Let stock Browsertime load the page `runs` times; returns the overhead per run with all metrics (s)."""
    spec = ReplaySpec(site.folder, setting.network, setting.protocol, repeatable=setting.loading.repeatable)
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        command = [sys.executable, "-m", "benchmarks.campaign.stock", str(site.folder), str(runs), temporary]
        start_s = time.time()
        replay(spec, command, stdin=subprocess.DEVNULL)
        end_s = time.time()
        try:
            page = json.loads((Path(temporary) / RESULT).read_text())[0]
        except FileNotFoundError:
            last = (Path(temporary) / "browsertime.log").read_text().strip().splitlines()[-1]
            raise EyelevelError(f"stock Browsertime has no result: {last}") from None
        loads: list[float] = [
            scripts["timings"]["pageTimings"]["pageLoadTime"] / 1000 for scripts in page["browserScripts"]
        ]
        complete = sum(bool(metrics.get("SpeedIndex")) for metrics in page["visualMetrics"])
        if not complete:
            raise EyelevelError("stock Browsertime computed no visual metrics")
        return (end_s - start_s - sum(load + setting.quiet_ms / 1000 for load in loads)) / complete


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--site", default="demo-light", show_default=True, help="A recorded site.")
@click.option("--net", default="dsl", show_default=True, help="A network.")
@click.option("--runs", default=5, show_default=True, help="Loads in a turn: a campaign's block, Browsertime's -n.")
@click.option("--blocks", default=1, show_default=True, help="Our blocks in a turn.")
@click.option("--turns", default=3, show_default=True, help="How often each takes its turn.")
def main(site: str, net: str, runs: int, blocks: int, turns: int) -> None:
    """Print seconds per run beyond load and quiet time, for us and for stock Browsertime, and how long our phases take.

    Example: python -m benchmarks.campaign --site demo-light --turns 3
    """
    recorded = collection.load_site(site)
    protocol = choose_one("protocol", PROTOCOL, protocols.load())
    setting = Setting(recorded, choose_one("network", net, networks.load()), protocol)
    our_s, stock_s, phases = [], [], []
    slot = TimedSlot()
    for turn in range(1, turns + 1):
        overhead_s, phases_of_turn = ours(setting, runs, blocks, slot)
        our_s.append(overhead_s)
        phases.append(phases_of_turn)
        stock_s.append(stock(recorded, setting, runs))
        click.echo(f"turn {turn}: ours {our_s[-1]:.2f} s, stock {stock_s[-1]:.2f} s")
    means = pd.DataFrame(phases).mean().rename_axis("phase of a run").to_frame("s")
    click.echo(f"\n{means.to_string(float_format='%.2f')}\n")
    click.echo(
        f"beyond load and quiet time: {mean(our_s):.2f} s each of {turns} x {blocks} x {runs} runs, stock Browsertime "
        f"{mean(stock_s):.2f} s each of {turns} x {runs}: {100 * mean(our_s) / mean(stock_s):.0f} %"
    )


if __name__ == "__main__":
    reports_errors(main)()
