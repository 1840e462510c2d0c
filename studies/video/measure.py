"""Plays of a generated video (`studies.video.pages`), one in each load. A load lasts as long as the play is
observed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from browsers.browsertime.configuration import STATIC_QUIET_MS
from dataset.reasons import Reason
from measure.campaign.campaign import Campaign
from measure.campaign.expectations import MISSED_REQUEST_EXPECTATION, Expectation
from measure.campaign.method import Method
from measure.run.aliases import choose_protocols
from measure.run.evidence import Evidence
from measure.run.setting import Loading, Setting
from record import collection
from studies.campaign import networks_before
from studies.study import RUNS, Measurement, Request
from studies.video.defaults import LADDER_BPS, NETWORKS, PLAYER, PROTOCOLS, RULES, SECONDS, TRUE, VIDEOS
from studies.video.pages import SEGMENT, Video, page_named
from studies.video.play import LEAST_REBUFFER_MS, fault, play_of
from tuning import networks, protocols
from tuning.settings import choose

STUDY = "video"
REPEATS = 3
# The time that a load may take beyond the play: a page that shows nothing by then never will.
BEYOND_S = 30


@dataclass(frozen=True)
class VideoMethod(Method):
    """Loads a page that plays a video for `seconds` and reports on the play."""

    seconds: int = SECONDS

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"seconds": self.seconds, "least_rebuffer_ms": LEAST_REBUFFER_MS}

    def seconds_of_run(self) -> float | None:
        """See `Method`."""
        return self.seconds

    def expectations(self) -> Sequence[Expectation]:
        """See `Method`. There is no expectation on how much a play requests, since it requests less if a protocol
        delivers less. But all its requests must be for existing files."""
        return [MISSED_REQUEST_EXPECTATION]

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """See `Method`."""
        # A player requests a failed segment again. It is a result, not an error, if a connection does not survive an
        # outage.
        kept = tuple(one for one in evidence.requests if not (one.error and SEGMENT.fullmatch(one.url)))
        if reason := super().reason_against(setting, folder, replace(evidence, requests=kept)):
            return reason
        try:
            text = fault(play_of(evidence.page), setting.protocol.http_versions)
        except EyelevelError as error:
            text = str(error)
        return Reason(STUDY, text) if text else None


def campaign(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    before = [
        video for site in (request.document.settings.sites if request.document else ()) if (video := page_named(site))
    ]
    seconds = int(request.options["seconds"] or request.own_setting("seconds", SECONDS))
    player = request.options["player"] or next((video.player for video in before), PLAYER)
    names = request.options["videos"] or (None if before else VIDEOS)
    kept = networks_before(request)
    chosen = kept if kept and request.net is None else choose("network", request.net or NETWORKS, networks.load())
    over = choose_protocols(request.names("proto", "protocols", PROTOCOLS), protocols.load())
    if request.document:
        over = [*choose_protocols(list(request.document.settings.protocols), protocols.load()), *over]
    videos = dict.fromkeys([*before, *(_videos(names, player, seconds) if names else ())])
    sites = [collection.load_site(video.name) for video in videos]
    one = Campaign(
        folder=request.folder,
        sites={site.name: site for site in sites},
        networks={network.name: network for network in [*kept, *chosen]},
        protocols={protocol.name: protocol for protocol in over},
        runs=request.number_of_runs(RUNS),
        seed=request.plan_seed,
        # Players measure times by the clock, which stands still in repeatable pages (`replay/repeatable.js`).
        loading=Loading(
            repeatable=False,
            filmed=False,
            quiet_ms=STATIC_QUIET_MS,
            limit_s=seconds + BEYOND_S,
            browser=request.browser_name,
        ),
        method=VideoMethod(seconds=seconds),
        repeats=request.setting("repeats", REPEATS),
        study={"name": STUDY},
    )
    return Measurement(one, summary=lambda: [f"measured: {one.folder}"])


def _videos(names: str, player: str, seconds: int) -> list[Video]:
    known = {name: Video(name, seconds, player) for name in (*LADDER_BPS, TRUE, *RULES)}
    videos = choose("video", names, known)
    for video in videos:
        if video.is_adaptive and player not in RULES[video.plays]:
            others = ", ".join(rule for rule, players in RULES.items() if player in players)
            raise EyelevelError(f"{player} has no rule {video.plays}; choose among {others}, or --player dash")
    return videos
