"""The specification of a visit, which is one page load as the client of a replay (`measure.run.visit`)."""

import sys
from dataclasses import dataclass
from pathlib import Path

from base.portable import as_argument
from browsers.browsertime.configuration import QUIET_MS
from measure.run.turn import LATEST_S
from tuning.defaults import DEFAULT_BROWSER
from tuning.protocols import Protocol


@dataclass(frozen=True)
class VisitSpec:
    """One load of the site in the folder `site`, over `protocol`; the load's files are left in `folder`.

    The browser sends `connection_options` to the server (`servers.contract`). The load may take `limit_s`. The page has
    finished when no response has ended for `quiet_ms`, and none is under way. `film`: whether the load is filmed.
    `cores`: those for the browser, and `film_cores`: those for the recorder of the film; empty if it may use any. If
    the load `awaits_turn`, it is prepared, and begins when it is told to (`measure.run.turn`). `idle_s`: how long it
    then waits for idle processors at most. `proxy`: the host and port of the proxy of CONNECT-UDP that the browser must
    use, if any.
    """

    site: Path
    protocol: Protocol
    connection_options: tuple[str, ...]
    limit_s: float
    folder: Path
    film: bool = True
    cores: tuple[int, ...] = ()
    film_cores: tuple[int, ...] = ()
    quiet_ms: int = QUIET_MS
    browser: str = DEFAULT_BROWSER
    awaits_turn: bool = False
    idle_s: float = LATEST_S
    proxy: tuple[str, int] | None = None

    def command(self) -> list[str | Path]:
        """The command line that makes the load, as the client of a replay."""
        return [sys.executable, "-m", "measure.run.visit", as_argument(self)]
