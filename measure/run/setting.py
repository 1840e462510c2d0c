"""The page, the network and the protocol of a run, and how the page is loaded; and where and when the run is made."""

from dataclasses import dataclass

from browsers.browsertime.configuration import QUIET_MS
from dataset.settings import CampaignSettings, LoadSettings
from measure.host.affinity import Layout
from measure.host.canary import Canary
from measure.run.server_rtts import NEXT_TO_THE_NETWORK, ServerRtts, kept_server_rtts
from record.connections import http1_servers
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER, RECORDED
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Loading(LoadSettings):
    """How pages are loaded.

    `quiet_ms`: a page has finished when no response to it has ended for this long, and none is under way; None stands
    for what suits the network. `browser`: its name (`browsers.registry`). `server_rtts`: how far beyond the network
    each server is.
    """

    quiet_ms: int | None = None
    browser: str = DEFAULT_BROWSER
    server_rtts: ServerRtts = NEXT_TO_THE_NETWORK

    @classmethod
    def of(cls, settings: CampaignSettings, browser: str = DEFAULT_BROWSER) -> "Loading":
        """How a campaign with these `settings` loads its pages in `browser`. Raises EyelevelError."""
        return cls(**settings.of_loads(), browser=browser, server_rtts=kept_server_rtts(settings))


@dataclass(frozen=True)
class Setting:
    """The page, the network and the protocol of a run, and how it loads. The network's losses are drawn from `seed`.

    `timekeeping`: how the network is to keep time (`measure.host.timekeeping`); in any way unless given.
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
        is_recorded = self.loading.alpn == RECORDED and self.protocol.in_kernel
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
