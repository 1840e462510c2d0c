"""The configuration of Browsertime for one load.

Every wait is the same for every protocol, since waits shift Speed Index and the last visual change; only the quiet time
is the network's.
"""

from pathlib import Path
from typing import Any

from browsers.contract import Browser, Page
from browsers.window import DESKTOP, MOBILE

# Navigation begins when the browser has been idle for this long, so that it does not start up while the page loads: its
# processes together have run, or waited for a processor, for less than IDLE_USED_MS. While it starts that is 10 ms and
# more. One that does not become idle is waited for no longer than IDLE_LIMIT_MS.
IDLE_WINDOW_MS = 100
IDLE_USED_MS = 2
IDLE_LIMIT_MS = 500
# A request to a host not asked before takes three round trips (TCP, TLS, HTTP): 2.3 s in the slowest network. A network
# for which runs have shown that less is enough says so itself (`quiet_ms` in tuning/networks.toml).
QUIET_MS = 3000
# The quiet time of a page that asks for nothing after its load event.
STATIC_QUIET_MS = 100
# When a page has been quiet for this long, the next run may be prepared, at idle priority. Not earlier, so that
# few pages are met that ask again: most pauses between responses are shorter (docs/quiet-times.md).
QUIET_SIGN_MS = 1000
# A page that has not begun to show, or is not loaded, is asked again after this long.
POLL_MS = 200
# A page is first asked whether it has finished after this long, as by Browsertime, where its quiet time is at least
# LONG_QUIET_MS: nothing is lost by that. Other pages are asked at once.
FIRST_ASKED_MS, LONG_QUIET_MS = 2000, 1000

# The recorder of films and what it is (`films/recorder`): films of another one have other times.
FILM = "changes of the screen"

# In the results: how long browser and film took to be ready.
READINESS = "readiness.json"
PAGE_COMPLETE = Path(__file__).with_name("page_complete.js")
# Asked at the end: on what the page believes to be.
VIEW = Path(__file__).with_name("view.js")


def settings(browser: Browser, quiet_ms: int) -> dict[str, Any]:
    """The settings that all loads share and that matter to results. `quiet_ms` is for networks without their own."""
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
    Further needs of the browser come from `Browser.browsertime_options`.
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
        "videoParams": {"convert": False, "addTimer": False, "createFilmstrip": False},
        "xvfbParams": {"display": display},
        # The conditions that `when_ready.mjs` waits for in place of Browsertime's own waits, where Browsertime would
        # take 0 for a default.
        "readiness": {"window_ms": IDLE_WINDOW_MS, "used_ms": IDLE_USED_MS, "limit_ms": IDLE_LIMIT_MS},
        "navigation": {"ask_after_ms": FIRST_ASKED_MS if quiet_ms >= LONG_QUIET_MS else 0},
        "orangeDesktopDelayTime": 0,
        "timeToSettle": 1,
        # With "normal" the driver itself waits for the load event; with "none" scripts would be run in
        # the page while it loads.
        "pageLoadStrategy": "normal",
        "pageCompleteCheck": str(PAGE_COMPLETE),
        "pageCompleteWaitTime": quiet_ms,
        "quietSignTime": QUIET_SIGN_MS,
        "pageCompleteCheckPollTimeout": POLL_MS,
        "timeouts": {"browserStart": 60_000, "pageLoad": limit_ms, "script": limit_ms, "pageCompleteCheck": limit_ms},
        "script": str(VIEW),
        **({"userAgent": page.user_agent} if page.user_agent else {}),
    }
