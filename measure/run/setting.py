"""What a run loads, behind what, over what, and how; and where and when it is made."""

from dataclasses import dataclass

from browsers.browsertime.configuration import QUIET_MS
from dataset.settings import CampaignSettings
from measure.host.affinity import Layout
from measure.host.canary import Canary
from measure.run.server_rtts import NEXT_TO_THE_NETWORK, ServerRtts, kept_server_rtts
from record.connections import http1_servers
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS, RECORDED
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Loading:
    """How pages are loaded.

    `repeatable`: whether pages are made to ask for the same on every load (`replay.repeatable`).
    `filmed`: whether loads are filmed; without a film, a run has no visual metrics.
    `quiet_ms`: a page has finished when no response to it has ended for so long, and none is under way; what suits the
    network unless given.
    `limit_s`: how long a load may take; what suits the page's size and the network unless given.
    `browser`: its name (`browsers.registry`).
    `shells`: the name of those that emulate the network (`replay.shells.registry`).
    `server_rtts`: how far beyond the network each server is. `think_time`: whether servers take as long to answer as
    the recorded ones took. `recorded_certificates`: whether chains of certificates are as long as the
    recorded ones. `recorded_alpn`: whether servers of which only HTTP/1.1 was recorded speak that over TCP.
    """

    repeatable: bool = True
    filmed: bool = True
    quiet_ms: int | None = None
    limit_s: float | None = None
    browser: str = DEFAULT_BROWSER
    shells: str = DEFAULT_SHELLS
    server_rtts: ServerRtts = NEXT_TO_THE_NETWORK
    think_time: bool = False
    recorded_certificates: bool = False
    recorded_alpn: bool = False

    @classmethod
    def of(cls, settings: CampaignSettings, browser: str = DEFAULT_BROWSER) -> "Loading":
        """How a campaign with these `settings` loads its pages in `browser`. Raises EyelevelError."""
        return cls(
            repeatable=settings.repeatable,
            filmed=settings.filmed,
            limit_s=settings.limit_s,
            browser=browser,
            shells=settings.shells,
            server_rtts=kept_server_rtts(settings),
            think_time=settings.think_time == RECORDED,
            recorded_certificates=settings.certificates == RECORDED,
            recorded_alpn=settings.alpn == RECORDED,
        )


@dataclass(frozen=True)
class Setting:
    """What a run loads, behind what, over what, and how. The network's losses are drawn from `seed`.

    `timekeeping`: with what the network is to keep time (`measure.host.timekeeping`); with anything unless given.
    """

    site: Site
    network: Network
    protocol: Protocol
    loading: Loading = Loading()
    seed: int | None = None
    timekeeping: str | None = None

    @property
    def http1_servers(self) -> frozenset[str]:
        """The addresses of the servers that speak HTTP/1.1 alone."""
        is_recorded = self.loading.recorded_alpn and self.protocol.in_kernel
        return http1_servers(self.site.connections) if is_recorded else frozenset()

    @property
    def quiet_ms(self) -> int:
        """For how long the page must have asked for nothing before it counts as finished."""
        return self.loading.quiet_ms or self.network.quiet_ms or QUIET_MS


@dataclass(frozen=True)
class Circumstances:
    """Where a block's runs are made: the block's number, the machine, its canary, how many times as long as usual
    the canary took, which cores do what, and in which of the machine's lanes, if it has any."""

    block: int
    machine: str
    canary: Canary | None = None
    slowness: float = 1.0
    layout: Layout | None = None
    lane: int | None = None
