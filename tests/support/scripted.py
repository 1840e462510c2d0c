"""Campaigns without a browser: valid evidence, loads with results chosen by a test, and a machine that is never busy.

`python -m support.scripted FOLDER` measures one, to look at its report.
"""

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from factories import ROW
from rich.console import Console

from browsers.contract import Request
from dataset.table import Row, Run
from films.frames import FilmStart
from films.visual_metrics import VisualMetrics
from measure.campaign.block import Block
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.lane import LaneSetting, RunningLane
from measure.campaign.lane_process import serve
from measure.campaign.method import Method
from measure.campaign.place import Work, measure_here
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results
from measure.campaign.slot import Slot
from measure.host.affinity import Layout
from measure.instruments.contract import ObservedLoad
from measure.run.evidence import Evidence, RequestCounts
from measure.run.setting import Circumstances, Setting
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from tuning import networks, protocols
from tuning.defaults import DEFAULT_BROWSER

# The evidence of a valid load, and of a broken one.
SOUND = Evidence(
    failures=(),
    plt=1000.0,
    visual=VisualMetrics(500, 900, 700, 650),
    film=FilmStart(400, -9, blank_after=True),
    requests=(Request("https://a.example/", "GET", True, False, "198.18.0.1", "h2", 200),),
    har_protocols={"h2": 1},
    request_counts=RequestCounts(1, 1, 0, 1),
)
FAILED = Evidence(("it broke",), None, None, None, (), {}, RequestCounts())

# The evidence of a load, or a text: the reason why its replay failed.
Outcome = Evidence | str
# A function that makes the evidence of a load of a setting, in a folder.
Script = Callable[[Setting, Path], Outcome]


def in_turn(*outcomes: Outcome) -> Script:
    """A script whose loads return `outcomes` in turn, then repeat the last one."""
    rest = list(outcomes)
    return lambda *_: rest.pop(0) if len(rest) > 1 else rest[0]


@dataclass(frozen=True)
class ScriptedLoads(Method):
    """Loads whose results `script` returns for their setting and folder; `evidence_of` keeps the result of each."""

    script: Script = lambda *_: SOUND
    evidence_of: dict[Path, Evidence] = field(default_factory=dict)

    def carry_out(self, setting: Setting, folder: Path, *_: object) -> str | None:
        """See `Method`."""
        outcome = self.script(setting, folder)
        failure = outcome if isinstance(outcome, str) else None
        self.evidence_of[folder] = outcome if isinstance(outcome, Evidence) else replace(FAILED, replay_failure=failure)
        return failure

    def evidence(self, setting: Setting, folder: Path) -> Evidence:
        """See `Method`; a load of another script is assumed valid."""
        return self.evidence_of.get(folder, SOUND)

    def analyse(self, folder: Path) -> None:
        """Do nothing: there is no film."""


class ScriptedSlot(Slot):
    """A slot on a machine that is never busy, with this `layout`; `look` is called at each check of the machine."""

    def __init__(
        self,
        lane: int | None = None,
        layout: Layout | None = None,
        real_time: bool = True,
        look: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(lane=lane)
        self._layout, self._real_time, self._look = layout, real_time, look

    def circumstances(self, block: int, warn: Callable[[str], None], *, shared: bool = False) -> Circumstances:
        """See `Slot`."""
        self._look()
        return Circumstances(block, self.machine, layout=self._layout, lane=self.lane)

    def has_real_time_priority(self) -> bool:
        """See `Slot`."""
        return self._real_time


@dataclass(frozen=True)
class ScriptedCampaign(Campaign):
    """A campaign on a machine with these `programs` (name → version)."""

    programs: Mapping[str, str] = field(default_factory=lambda: {"chromium": "1"})

    def versions(self) -> dict[str, str]:
        """See `Campaign`."""
        return dict(self.programs)


def one_page(folder: Path) -> Site:
    """A site of one exchange, written to `folder`."""
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"x"), "192.0.2.1")
    return write_site(Recording(page.url, (page,), {"tool": "test"}), folder)


def scripted_campaign(
    folder: Path, net: str = "lte", proto: str = "tcp tcp+", runs: int = 2, **further: Any
) -> ScriptedCampaign:
    """A campaign of one page (`folder`/site) on these networks over these protocols, in `folder`/results/scripted."""
    known_networks, known_protocols = networks.load(), protocols.load()
    return ScriptedCampaign(
        **{
            "folder": folder / "results" / "scripted",
            "sites": {"site": one_page(folder / "site")},
            "networks": {name: known_networks[name] for name in net.split()},
            "protocols": {name: known_protocols[name] for name in proto.split()},
            "runs": runs,
            "seed": 1,
            "method": ScriptedLoads(),
            **further,
        }
    )


def measured(campaign: Campaign, *outcomes: Outcome, script: Script | None = None, **arguments: Any) -> str:
    """Measure `campaign` on a machine that is never busy; returns the output.

    The loads return the results of `script` if given, else `outcomes` in turn. With neither, the campaign's own method
    makes them. `arguments` are passed to `measure`.
    """
    printed = io.StringIO()
    if script or outcomes:
        campaign = replace(campaign, method=ScriptedLoads(script=script or in_turn(*outcomes)))
    display = partial(ProgressDisplay, Console(file=printed, width=200))
    measure(campaign, display, partial(measure_here, slot=ScriptedSlot()), **arguments)
    return printed.getvalue()


def observed_load(folder: Path) -> ObservedLoad:
    """A load that is about to begin, for an instrument that writes its file in `folder`."""
    network, protocol = networks.load()["lte"], protocols.load()["tcp"]
    site = one_page(folder / "site")
    return ObservedLoad(os.getpid(), site, network, protocol, DEFAULT_BROWSER, None, folder, lambda: None)


def work_of(
    campaign: Campaign,
    results: Results,
    display: ProgressDisplay,
    may_begin: Callable[[Block], bool] = lambda _: True,
    end: Callable[[Block], None] = lambda _: None,
) -> Work:
    """All blocks of `campaign`, in the form that a place receives."""
    blocks = [campaign.block(number, runs) for number, runs in enumerate(campaign.plan(), start=1)]
    return Work(campaign, blocks, results, display, may_begin, end, lambda _: None)


def row_of(run: Run, **changes: Any) -> Row:
    """The row of a valid attempt at `run`, in the folder of its first attempt unless `changes` says otherwise."""
    folder = f"runs/{run.site}/{run.network}/{run.protocol}/{run.number}-1"
    of = {**vars(run), "run": run.number}
    del of["number"]
    return replace(ROW, **{**of, "folder": folder, **changes})


@contextmanager
def lane_thread(setting: LaneSetting) -> Iterator[RunningLane]:
    """Stands in for `measure.campaign.lane.running_lane`: a lane that is a thread."""
    ours, theirs = Pipe()

    def work() -> None:
        with suppress(EOFError, OSError):  # the test ended it
            serve(setting.folder, ScriptedSlot(setting.lane.number), theirs)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield RunningLane(setting.lane, MagicMock(), ours)
    finally:
        ours.close()
        thread.join()


if __name__ == "__main__":
    print(measured(scripted_campaign(Path(sys.argv[1])), SOUND))
