"""Live loads: how long a recorded page took when a browser loaded it from the web itself, without the recorder between.

They are kept with the site as `sites/<name>/live.json`, and are no part of the recording (`measure.live` reads them).
Standard library only.
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
    """One load: metrics in ms by their names, and how many of the page's requests used each version of HTTP
    (http/1.1, h2, h3); and what the machine's canary took just before (`measure.host.canary`), in ms by its tasks,
    which loads of archives do not tell."""

    metrics: Mapping[str, float]
    protocols: Mapping[str, int]
    canary_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LiveLoads:
    """The live loads of one page.

    `browser`: which browser made them. `loaded_at`: when the first began (ISO 8601). `network`: the name of the access
    network that they went over, as the settings name it, if that is known, with its values then, `network_settings`.
    `round_trips_ms`: address of a server → the shortest handshake of TCP with it in all loads.
    """

    browser: str
    loaded_at: str
    loads: tuple[LiveLoad, ...]
    network: str | None = None
    network_settings: Mapping[str, Any] = field(default_factory=dict)
    round_trips_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def requests(self) -> Counter[str]:
        """How many requests of all loads used each version of HTTP."""
        return sum((Counter(load.protocols) for load in self.loads), Counter())


def write_live(live: LiveLoads, folder: Path) -> None:
    """Keep `live` in the folder of its site. Raises OSError."""
    write_atomically(folder / LIVE, json.dumps({"format": FORMAT, **asdict(live)}, indent=1) + "\n")


def http_version(name: str) -> str:
    """The version of HTTP as ALPN names it, of the `name` that an archive has for it: h2 of HTTP/2, http/2.0, h2."""
    name = name.lower()
    if "quic" in name or "3" in name:
        return "h3"
    return "h2" if "2" in name else "http/1.1"
