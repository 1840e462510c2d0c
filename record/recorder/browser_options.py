"""The settings of the recording browser, in addition to those of all browsers of the testbed.

Standard library only: the proxy's addon loads this module, too.
"""

from pathlib import Path
from typing import Any

from browsers.chromium.program import BINARY, COMMON_SWITCHES, DISABLED_FEATURES, NOWHERE_HOST, WITHOUT_WEBRTC, phone
from browsers.window import Window

# Browsertime disables these in replays.
ALSO_DISABLED_FEATURES = ("MediaRouter", "Translate")
# With site isolation, a frame from another site has a process of its own, in which our script cannot run before the
# frame's scripts. For a page script, isolation is disabled, so that all frames share one process.
SITE_ISOLATION = ("IsolateOrigins", "site-per-process")
# The time limit of each of our scripts in a page, and of the page script.
SCRIPT_LIMIT_S = 30.0


def switches(window: Window, profile: Path, proxy_port: int, *, scripted: bool = False) -> list[str]:
    """Chromium's switches for one recording; `scripted`: the page has a page script. All requests go through the proxy,
    also those to loopback addresses."""
    isolation = SITE_ISOLATION if scripted else ()
    return [
        *COMMON_SWITCHES,
        f"window-size={window.width},{window.height}",
        "window-position=0,0",
        f"user-data-dir={profile}",
        f"proxy-server=http://127.0.0.1:{proxy_port}",
        "proxy-bypass-list=<-loopback>",
        "disable-quic",
        WITHOUT_WEBRTC,
        "disable-component-update",
        "disable-domain-reliability",
        "disable-breakpad",
        *(["disable-site-isolation-trials"] if scripted else []),
        f"disable-features={','.join((*DISABLED_FEATURES, *ALSO_DISABLED_FEATURES, *isolation))}",
    ]


def capabilities(window: Window, chromium_switches: list[str], load_limit_s: float) -> dict[str, Any]:
    """The request for a WebDriver session (W3C WebDriver section 7, ChromeDriver's `goog:chromeOptions`)."""
    # Browsertime excludes this switch in replays, too: it would show a bar above the page.
    options: dict[str, Any] = {
        "binary": str(BINARY),
        "args": chromium_switches,
        "excludeSwitches": ["enable-automation"],
    }
    if window.mobile:
        # ChromeDriver sets a matching user agent.
        options["mobileEmulation"] = phone(window)
    always = {
        "browserName": "chrome",
        "pageLoadStrategy": "normal",
        "unhandledPromptBehavior": "dismiss",
        "timeouts": {"pageLoad": round(load_limit_s * 1000), "script": round(SCRIPT_LIMIT_S * 1000)},
        "goog:chromeOptions": options,
    }
    return {"capabilities": {"alwaysMatch": always}}


def is_background_request(host: str, fetch_site: str | None, fetch_mode: str | None) -> bool:
    """Whether the browser itself made a request, judged by its host and its headers `Sec-Fetch-Site` and
    `Sec-Fetch-Mode`.

    A page's request states how the page is related to the host. "none" means a request of the browser itself, or the
    navigation to an address that a person typed (Fetch Metadata, section 2.4).
    """
    return host == NOWHERE_HOST or (fetch_site == "none" and fetch_mode != "navigate")
