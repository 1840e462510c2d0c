"""How far each server of a site is beyond the access network: not at all, as recorded, or as a file says.

The file is TOML, with a table for each site. Keys are hosts, recorded IPs or addresses of the replay. A value is by how
much the round trip to that server exceeds the network's, in ms. `default` is for all other servers; without it, they
have 0:

    [demo-news]
    default = 15
    "cdn.demo-news.example" = 4.5
    "198.18.0.3" = 120
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from base.errors import EyelevelError
from base.text import excerpt
from dataset.settings import CampaignSettings
from record.round_trips import extra_rtts_ms
from record.site import Site
from tuning.defaults import OFF, RECORDED

FILE = "file"
# "recorded-12.5ms": as recorded, minus the 12.5 ms of the recorder's own access.
AS_RECORDED = re.compile(rf"{RECORDED}(?:-(\d+(?:\.\d+)?)ms)?")
DEFAULT = "default"
# A generous limit: half-way around the Earth and back takes 200 ms, via a geostationary satellite 500 ms.
MOST_MS = 10_000.0


@dataclass(frozen=True)
class ServerRtts:
    """The setting. `kind`: OFF, RECORDED or FILE. `access_ms`: the round-trip time of the recorder's own access, if
    given. `by_site`: site → host or address → extra round-trip time, from a file."""

    kind: str = OFF
    access_ms: float | None = None
    by_site: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.kind if self.access_ms is None else f"{self.kind}-{self.access_ms:.15g}ms"

    def extra_ms(self, site: Site) -> dict[str, float]:
        """Server address of `site` → by how much its round trip exceeds the network's (ms); empty if off.

        Raises EyelevelError when that is unknown.
        """
        if self.kind == OFF:
            return {}
        if self.kind == RECORDED:
            return extra_rtts_ms(site, self.access_ms)
        if site.name not in self.by_site:
            raise EyelevelError(f"the file of --server-rtts has no [{site.name}]; add it, or leave that site out")
        return _by_address(site, self.by_site[site.name])


NEXT_TO_THE_NETWORK = ServerRtts()


def parse_server_rtts(text: str) -> ServerRtts:
    """The setting in `text`: a word, or the path of a file. Raises EyelevelError."""
    if text == OFF:
        return NEXT_TO_THE_NETWORK
    if match := AS_RECORDED.fullmatch(text):
        return ServerRtts(RECORDED, float(match[1]) if match[1] else None)
    file = Path(text)
    try:
        document = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise EyelevelError(
            f"--server-rtts: {excerpt(text)} is neither {OFF}, {RECORDED}, {RECORDED}-12ms nor a file"
        ) from None
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{file}: {error}") from None
    for name, table in document.items():
        if not isinstance(table, dict):
            raise EyelevelError(f"{file}: {name} is not a table of a site's servers; see docs/networks.md")
        for server, extra_ms in table.items():
            if type(extra_ms) not in (int, float) or not 0 <= extra_ms <= MOST_MS:
                raise EyelevelError(f"{file}: [{name}] {server} must be from 0 to {MOST_MS:g} ms, not {extra_ms!r}")
    return ServerRtts(FILE, by_site=document)


def kept_server_rtts(settings: CampaignSettings) -> ServerRtts:
    """The setting of a campaign with these `settings`. Raises EyelevelError."""
    if settings.server_rtts != FILE:
        return parse_server_rtts(settings.server_rtts)
    return ServerRtts(FILE, by_site=settings.extra_rtts_ms)


def _by_address(site: Site, given: Mapping[str, float]) -> dict[str, float]:
    """Address → value, from the values `given` for hosts, recorded IPs or addresses. Raises EyelevelError."""
    names = {
        address: {address, ip, *(authority.partition(":")[0] for authority in site.servers[address])}
        for address, ip in site.recorded_ips.items()
    }
    if unknown := given.keys() - {DEFAULT}.union(*names.values()):
        raise EyelevelError(
            f"--server-rtts: [{site.name}] has {', '.join(sorted(unknown))}, which is not one of its servers"
        )
    extra_ms: dict[str, float] = {}
    for address, of_server in names.items():
        values = {float(given[name]) for name in of_server if name in given}
        if len(values) > 1:
            raise EyelevelError(
                f"--server-rtts: [{site.name}] has several values for the server {address}; give it one"
            )
        extra_ms[address] = values.pop() if values else float(given.get(DEFAULT, 0))
    return extra_ms
