"""Live loads: how long a recorded page took when a browser loaded it from the web itself, without the recorder.

They are stored with the site as `sites/<name>/live.json`, and are not part of the recording (`measure.live` reads
them). Standard library only.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from base.files import write_atomically
from record.layout import LIVE

FORMAT = 1
HTTP_VERSIONS = ("http/1.1", "h2", "h3")


@dataclass(frozen=True)
class LiveLoad:
    """One load: metric → ms; version of HTTP (http/1.1, h2, h3) → number of the page's requests; and task of the
    machine's canary just before the load (`measure.host.canary`) → ms. Loads in archives have no canary."""

    metrics: Mapping[str, float]
    protocols: Mapping[str, int]
    canary_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveLoads:
    """The live loads of one page.

    `browser`: the browser that made them. `loaded_at`: when the first began (ISO 8601). `network`: the name, in our
    settings, of the access network used, if known; `network_settings` are its settings at the time. `round_trips_ms`:
    address of a server → its shortest TCP handshake in all loads.
    """

    browser: str
    loaded_at: str
    loads: tuple[LiveLoad, ...]
    network: str | None = None
    network_settings: Mapping[str, Any] = field(default_factory=dict)
    round_trips_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def requests(self) -> Counter[str]:
        """Version of HTTP → number of requests in all loads."""
        return sum((Counter(load.protocols) for load in self.loads), Counter())


def write_live(live: LiveLoads, folder: Path) -> None:
    """Write `live` into the folder of its site. Raises OSError."""
    write_atomically(folder / LIVE, json.dumps({"format": FORMAT, **asdict(live)}, indent=1) + "\n")


def http_version(name: str) -> str:
    """The version of HTTP, as ALPN names it, from the `name` in an archive: h2 for HTTP/2, http/2.0 and h2."""
    name = name.lower()
    if "quic" in name or "3" in name:
        return "h3"
    return "h2" if "2" in name else "http/1.1"
