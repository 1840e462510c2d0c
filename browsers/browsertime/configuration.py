"""What Browsertime is configured with for one load.

Every wait is the same for every protocol, since waits shift Speed Index and the last visual change; only the quiet time
is the network's.
"""

from pathlib import Path
from typing import Any

from browsers.contract import Browser, Page
from browsers.window import DESKTOP, MOBILE

# Without a pause here navigation may begin while the browser still starts up.
SETTLE_MS = 500
# Between the start of the film and the navigation: some frames of orange, by which the film's zero is found.
ORANGE_MS = 200
# A request to a host not asked before takes three round trips (TCP, TLS, HTTP): 2.3 s in the slowest network. A network
# for which runs have shown that less is enough says so itself (`quiet_ms` in tuning/networks.toml).
QUIET_MS = 3000
# The same for a page that asks for nothing after its load event.
STATIC_QUIET_MS = 100
POLL_MS = 200
FRAMERATE = 30

PAGE_COMPLETE = Path(__file__).with_name("page_complete.js")


def settings(browser: Browser, quiet_ms: int) -> dict[str, Any]:
    """What is the same for every load and matters to its result. `quiet_ms`: where the network does not say its own."""
    return {
        "settle_ms": SETTLE_MS,
        "orange_ms": ORANGE_MS,
        "quiet_ms": quiet_ms,
        "poll_ms": POLL_MS,
        "framerate": FRAMERATE,
        "desktop": [DESKTOP.width, DESKTOP.height],
        "mobile": [MOBILE.width, MOBILE.height],
        **browser.settings(),
    }


def configuration(
    page: Page, results: Path, display: int, limit_s: float, quiet_ms: int, *, film: bool
) -> dict[str, Any]:
    """Browsertime's configuration for one load of `page` on `display`, with results in `results`.

    `quiet_ms`: for how long nothing must have been asked for before the page counts as finished. What the
    browser needs beside comes from `Browser.browsertime_options`.
    """
    limit_ms = round(limit_s * 1000)
    return {
        "iterations": 1,
        "browserRestartTries": 1,
        "retries": 0,
        "resultDir": str(results),
        "useSameDir": True,
        "gzipHar": True,
        "viewPort": f"{page.window.width}x{page.window.height}",
        # The film is kept as it is and analysed after the run, so that nothing else runs beside the load.
        "video": film,
        "visualMetrics": False,
        "videoParams": {"framerate": FRAMERATE, "convert": False, "addTimer": False, "createFilmstrip": False},
        "xvfbParams": {"display": display},
        "orangeDesktopDelayTime": ORANGE_MS,
        "timeToSettle": SETTLE_MS,
        # With "normal" the driver itself waits for the load event; with "none" scripts would be run in
        # the page while it loads.
        "pageLoadStrategy": "normal",
        "pageCompleteCheck": str(PAGE_COMPLETE),
        "pageCompleteWaitTime": quiet_ms,
        "pageCompleteCheckPollTimeout": POLL_MS,
        "timeouts": {"browserStart": 60_000, "pageLoad": limit_ms, "script": limit_ms, "pageCompleteCheck": limit_ms},
        **({"userAgent": page.user_agent} if page.user_agent else {}),
    }
