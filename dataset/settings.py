"""The settings on which a campaign's results depend: `settings` in `campaign.json`, which omits default values."""

from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from base.structure import unstructured
from tuning.defaults import DEFAULT_SHELLS, OFF
from tuning.devices import require_network_name

Settings = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class LoadSettings:
    """How a campaign loads its pages, for every page, network, protocol and browser.

    `repeatable`: pages are changed so that they request the same on every load (`replay.repeatable`).
    `filmed`: loads are filmed; without a film, a run has no visual metrics.
    `limit_s`: the time limit of a load; None: a limit that suits page and network.
    `shells`: the name of the shells that emulate networks (`replay.shells.registry`).
    `think_time`: `recorded` if servers take as long to answer as the recorded ones did, or `off`.
    `alpn`: `recorded` if servers for which only HTTP/1.1 was recorded speak HTTP/1.1 over TCP, or `off`.
    `certificates`: `recorded` if certificate chains are as long as the recorded ones, or `off`.
    """

    repeatable: bool = True
    filmed: bool = True
    limit_s: float | None = None
    shells: str = DEFAULT_SHELLS
    think_time: str = OFF
    alpn: str = OFF
    certificates: str = OFF

    def of_loads(self) -> dict[str, Any]:
        """Name → value of these settings, without those that a subclass adds."""
        return {one.name: getattr(self, one.name) for one in fields(LoadSettings)}


@dataclass(frozen=True)
class CampaignSettings(LoadSettings):
    """The settings of a campaign.

    `seed`: the seed of the order of runs and of their losses. `runs`: the number of runs of each site, network and
    protocol; the maximum if `auto`. `repeats`: how often a run that does not count is repeated. `lanes`: on how
    many sets of processors each machine makes runs at once. `at_once`: network → how many runs on it share each set, if
    more than one. `server_rtts`: how far servers are beyond the network, in the form of the option
    (`measure.run.server_rtts`). `browser`: settings of the first browser, with its `name`; `further_browsers`: settings
    of the others, by name. `sites`: name → `url`, `sha256` of the recording, and `extra_rtts_ms` of its servers, by
    address. `networks`, `protocols`: all their values, by name. `method`: settings of the campaign's study.
    """

    seed: int | None = None
    runs: int | None = None
    auto: bool = False
    repeats: int = 0
    lanes: int = 1
    at_once: dict[str, int] = field(default_factory=dict)
    server_rtts: str = OFF
    method: dict[str, Any] = field(default_factory=dict)
    browser: dict[str, Any] = field(default_factory=dict)
    further_browsers: Settings = field(default_factory=dict)
    sites: Settings = field(default_factory=dict)
    networks: Settings = field(default_factory=dict)
    protocols: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.networks:
            require_network_name(name)

    def content(self) -> dict[str, Any]:
        """The settings in the form of `campaign.json`."""
        values: dict[str, Any] = unstructured(self)
        return {one.name: values[one.name] for one in fields(self) if getattr(self, one.name) != usual(one)}

    @property
    def first_browser(self) -> str:
        """The name of the first browser; empty if there is none."""
        return str(self.browser.get("name", ""))

    @property
    def browsers(self) -> tuple[str, ...]:
        """The names of all browsers."""
        return tuple(filter(None, self.settings_of_browsers))

    @property
    def settings_of_browsers(self) -> Settings:
        """Browser → its settings, the first browser first."""
        return {self.first_browser: self.browser, **self.further_browsers}

    @property
    def extra_rtts_ms(self) -> dict[str, dict[str, float]]:
        """Site → address of a server → how much longer its round trip is than the network's (ms); empty if off."""
        return {name: dict(extra) for name, site in self.sites.items() if (extra := site.get("extra_rtts_ms"))}

    @property
    def seconds_of_run(self) -> float | None:
        """The duration of a run (s) if the campaign's study fixes one for every page and network, as for the play of a
        video."""
        seconds = self.method.get("seconds")
        return None if seconds is None else float(seconds)

    def runs_at_once(self, network: str) -> int:
        """How many runs on `network` each machine makes at once."""
        return self.lanes * self.at_once.get(network, 1)

    def quiet_ms(self, network: str) -> float | None:
        """The time for which a page on `network` must have requested nothing before it counts as finished (ms); None if
        that is unknown."""
        of_network: float | None = self.networks.get(network, {}).get("quiet_ms")
        usual_ms: float | None = self.browser.get("quiet_ms")
        return of_network or usual_ms


def usual(one: Any) -> Any:
    """The default value of a field."""
    return one.default if one.default is not MISSING else one.default_factory()
