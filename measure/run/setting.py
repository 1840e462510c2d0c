"""The setting of a run: its page, network and protocol, and how the page is loaded. Also its circumstances: where and
when it is made."""

from dataclasses import dataclass

from browsers.browsertime.configuration import QUIET_MS
from dataset.settings import CampaignSettings, LoadSettings
from measure.host.affinity import Layout
from measure.host.canary import Canary
from measure.host.sharing import ALONE, Sharing
from measure.run.server_rtts import NEXT_TO_THE_NETWORK, ServerRtts, kept_server_rtts
from record.connections import http1_servers
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER, RECORDED
from tuning.networks import Network
from tuning.protocols import Protocol


@dataclass(frozen=True)
class Loading(LoadSettings):
    """How pages are loaded.

    `quiet_ms`: a page has finished when no response to it has ended for this long, and none is under way; None means
    the network's own value. `browser`: the browser's name (`browsers.registry`). `server_rtts`: how far each server is
    beyond the network.
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
    """The page, network and protocol of a run, and how it is loaded. `seed` determines the network's losses.

    `timekeeping`: how the network must keep time (`measure.host.timekeeping`); None permits any way.
    """

    site: Site
    network: Network
    protocol: Protocol
    loading: Loading = Loading()
    seed: int | None = None
    timekeeping: str | None = None

    @property
    def http1_servers(self) -> frozenset[str]:
        """The addresses of the servers that speak only HTTP/1.1."""
        is_recorded = self.loading.alpn == RECORDED and self.protocol.in_kernel
        return http1_servers(self.site.connections) if is_recorded else frozenset()

    @property
    def quiet_ms(self) -> int:
        """How long the page must be quiet before it counts as finished."""
        return self.loading.quiet_ms or self.network.quiet_ms or QUIET_MS


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a block's runs: the block's number, the machine, its canary, the canary's time relative to
    the usual, which cores do what, the machine's lane, if it has any, the loads that share its processors, and the
    campaign's sitting, if they are of one."""

    block: int
    machine: str
    canary: Canary | None = None
    slowness: float = 1.0
    layout: Layout | None = None
    lane: int | None = None
    sharing: Sharing = ALONE
    sitting: int | None = None
