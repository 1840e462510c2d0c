"""Loads of a page that are filmed by the product's recorder, by FFmpeg as Browsertime starts it, by both, or not."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from benchmarks.films.pages import made_site
from browsers.browsertime.configuration import QUIET_MS
from dataset.run_files import LOG, TIMES
from measure.run.evidence import Evidence, analyse_film, read_evidence
from measure.run.visit_spec import VisitSpec
from replay import ReplaySpec, run
from tuning import networks, protocols

RECORDER, FFMPEG, BOTH, NONE = WAYS = ("recorder", "ffmpeg", "both", "none")
PROTOCOL = "tcp"
LIMIT_S = 180.0
# The files of such a load that a run does not have: FFmpeg's film, and the processor times of programs.
FFMPEG_FILM, COSTS = "ffmpeg.mp4", "costs.json"


@dataclass(frozen=True)
class FilmedLoad:
    """One load: its evidence, the numbers that the recorder counted, and the processor times of FFmpeg and of the X
    server (ms)."""

    folder: Path
    evidence: Evidence
    ffmpeg_ms: float
    display_ms: float
    counts: Mapping[str, float] = field(default_factory=dict)

    @property
    def film_ms(self) -> float:
        """The processor time (ms) of the recorder or FFmpeg, and of the X server. The X server's includes drawing the
        page."""
        return self.ffmpeg_ms + self.counts.get("recorder_ms", 0.0) + self.display_ms

    @property
    def to_request_ms(self) -> float:
        """How long after the load's turn the page was requested."""
        begin_s = float(json.loads((self.folder / TIMES).read_text())["begin"])
        requests_s = [request.began_s for request in self.evidence.requests if request.main_frame and request.began_s]
        return 1000 * (min(requests_s) - begin_s)


def load(
    site: str, network: str, way: str, folder: Path, *, quiet_ms: int | None = None, script: str = ""
) -> FilmedLoad:
    """Load the page of `site` on `network` over TCP, filmed in this `way`. The load's files are in `folder`. `script`
    is the path of a script that runs in the page at the end. Raises EyelevelError when the load fails."""
    sites = folder.parent / "sites"
    site_folder = sites / site if (sites / site).exists() else made_site(site, sites)
    net, protocol = networks.load()[network], protocols.load()[PROTOCOL]
    quiet_ms = quiet_ms or net.quiet_ms or QUIET_MS
    spec = VisitSpec(site_folder, protocol, (), LIMIT_S, folder, film=way != NONE, quiet_ms=quiet_ms)
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "benchmarks.films.visit", way, script, spec.command()[-1]]
    with (folder / "output").open("wb") as output:
        outcome = run(ReplaySpec(site_folder, net, protocol), command, stdout=output.fileno(), stderr=output.fileno())
    if outcome.status:
        said = (folder / "output").read_text() + (folder / LOG).read_text() if (folder / LOG).exists() else ""
        raise EyelevelError(f"{site} on {network} was not loaded: {said[-400:]}")
    analyse_film(folder)
    costs = json.loads((folder / COSTS).read_text())
    visual = json.loads((folder / "visual.json").read_text()) if (folder / "visual.json").exists() else {}
    evidence = read_evidence(folder, filmed=way in (RECORDER, BOTH))
    return FilmedLoad(folder, evidence, **costs, counts=visual.get("recorder", {}))


def asked(load: FilmedLoad) -> Any:
    """The result of the script that ran in the page at the end."""
    answers = [answer for scripts in load.evidence.page["browserScripts"] for answer in scripts["custom"].values()]
    return next(answer["asked"] for answer in answers if isinstance(answer, dict) and "asked" in answer)
