"""The configuration of Browsertime for one load.

All waits are the same for all protocols, since waits shift Speed Index and the last visual change. Only the quiet time
may depend on the network.
"""

from pathlib import Path
from typing import Any

from browsers.contract import Browser, Page
from browsers.window import DESKTOP, MOBILE

# Navigation begins when the browser has been idle for this long, so that the browser is not still starting while the
# page loads. It is idle if its processes together have run, or waited for a processor, for less than IDLE_USED_MS in
# this time; while it starts, they take 10 ms or more. If it does not become idle, navigation begins after
# IDLE_LIMIT_MS.
IDLE_WINDOW_MS = 100
IDLE_USED_MS = 2
IDLE_LIMIT_MS = 500
# The quiet time unless the network has its own: a request to a new host takes three round trips (TCP, TLS, HTTP), which
# are 2.3 s on the slowest network. If runs have shown that less suffices for a network, tuning/networks.toml has its
# own `quiet_ms`.
QUIET_MS = 3000
# The quiet time for a page that sends no request after its load event.
STATIC_QUIET_MS = 100
# When a page has been quiet for this long, the next run may be prepared, at idle priority. Most pauses between
# responses are shorter (docs/contributors/quiet-times.md), so few pages send a further request after it.
QUIET_SIGN_MS = 1000
# Pages are asked whether they have finished. If the new page is not there yet, or not loaded, it is asked again after
# this long.
POLL_MS = 200
# If the quiet time is at least LONG_QUIET_MS, the page is first asked FIRST_ASKED_MS after the navigation, as in
# Browsertime, so no load ends earlier. If the quiet time is shorter, the page is asked at once.
FIRST_ASKED_MS, LONG_QUIET_MS = 2000, 1000

# The kind of recorder that makes films (`films/recorder`). It is among the settings, since films of another recorder
# have other times.
FILM = "changes of the screen"

# The file in the results that says how long browser and film took to be ready.
READINESS = "readiness.json"
PAGE_COMPLETE = Path(__file__).with_name("page_complete.js")
# The script that asks the page at the end how it sees its device.
VIEW = Path(__file__).with_name("view.js")


def settings(browser: Browser, quiet_ms: int) -> dict[str, Any]:
    """The settings that all loads share and on which results depend. `quiet_ms` applies to networks without their
    own."""
    return {
        "idle_window_ms": IDLE_WINDOW_MS,
        "idle_used_ms": IDLE_USED_MS,
        "idle_limit_ms": IDLE_LIMIT_MS,
        "quiet_ms": quiet_ms,
        "waits_for_open_requests": True,
        "poll_ms": POLL_MS,
        "film": FILM,
        "desktop": [DESKTOP.width, DESKTOP.height],
        "mobile": [MOBILE.width, MOBILE.height],
        **browser.settings(),
    }


def configuration(
    page: Page, results: Path, display: int, limit_s: float, quiet_ms: int, *, film: bool
) -> dict[str, Any]:
    """Browsertime's configuration for one load of `page` on `display`, with results in `results`.

    `quiet_ms`: for how long no response must have ended, and none be under way, before the page counts as finished.
    `Browser.browsertime_options` has the further options that a browser needs.
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
        # The film is only stored, and analysed after the run, so that nothing else runs during the load.
        "video": film,
        "visualMetrics": False,
        "videoParams": {"convert": False, "addTimer": False, "createFilmstrip": False},
        "xvfbParams": {"display": display},
        # The conditions for which `when_ready.mjs` waits, in place of Browsertime's own waits. Those are as short as
        # possible: Browsertime would replace a `timeToSettle` of 0 by its default.
        "readiness": {"window_ms": IDLE_WINDOW_MS, "used_ms": IDLE_USED_MS, "limit_ms": IDLE_LIMIT_MS},
        "navigation": {"ask_after_ms": FIRST_ASKED_MS if quiet_ms >= LONG_QUIET_MS else 0},
        "orangeDesktopDelayTime": 0,
        "timeToSettle": 1,
        # With "normal", the driver itself waits for the load event. With "none", scripts would run in the page while it
        # loads.
        "pageLoadStrategy": "normal",
        "pageCompleteCheck": str(PAGE_COMPLETE),
        "pageCompleteWaitTime": quiet_ms,
        "quietSignTime": QUIET_SIGN_MS,
        "pageCompleteCheckPollTimeout": POLL_MS,
        "timeouts": {"browserStart": 60_000, "pageLoad": limit_ms, "script": limit_ms, "pageCompleteCheck": limit_ms},
        "script": str(VIEW),
        **({"userAgent": page.user_agent} if page.user_agent else {}),
    }
