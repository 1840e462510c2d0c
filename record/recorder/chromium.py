"""How the recording browser is set up, beyond what every browser of the testbed is told.

Standard library only: the proxy's addon loads it too.
"""

from pathlib import Path
from typing import Any

from base.chromium import BINARY, COMMON_SWITCHES, DISABLED_FEATURES, NOWHERE_HOST, Window, phone

# In replays Browsertime switches these off.
ALSO_DISABLED_FEATURES = ("MediaRouter", "Translate")


def switches(window: Window, profile: Path, proxy_port: int, sandboxed: bool) -> list[str]:
    """Chromium's switches for one recording. Everything goes through the proxy, to loopback addresses too."""
    return [
        *COMMON_SWITCHES,
        f"window-size={window.width},{window.height}",
        "window-position=0,0",
        f"user-data-dir={profile}",
        f"proxy-server=http://127.0.0.1:{proxy_port}",
        "proxy-bypass-list=<-loopback>",
        "disable-quic",
        "force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "disable-component-update",
        "disable-domain-reliability",
        "disable-breakpad",
        f"disable-features={','.join((*DISABLED_FEATURES, *ALSO_DISABLED_FEATURES))}",
        *([] if sandboxed else ["no-sandbox"]),
    ]


def capabilities(window: Window, chromium_switches: list[str], load_limit_s: float) -> dict[str, Any]:
    """What a WebDriver session is asked for (W3C WebDriver section 7, ChromeDriver's `goog:chromeOptions`)."""
    # Without that switch, as Browsertime has it in replays: it puts a bar over the page.
    options: dict[str, Any] = {
        "binary": str(BINARY),
        "args": chromium_switches,
        "excludeSwitches": ["enable-automation"],
    }
    if window.mobile:
        # ChromeDriver makes the user agent that goes with it.
        options["mobileEmulation"] = phone(window)
    always = {
        "browserName": "chrome",
        "pageLoadStrategy": "normal",
        "unhandledPromptBehavior": "dismiss",
        "timeouts": {"pageLoad": round(load_limit_s * 1000), "script": 10_000},
        "goog:chromeOptions": options,
    }
    return {"capabilities": {"alwaysMatch": always}}


def is_the_browser_s_own(host: str, fetch_site: str | None, fetch_mode: str | None) -> bool:
    """Whether a request is one that no page asked for, by its host and its `Sec-Fetch-Site` and `-Mode`.

    What a page asks for comes from some site; only what the browser asks for by itself, or a person by typing an
    address, comes from none (Fetch Metadata, section 2.4).
    """
    return host == NOWHERE_HOST or (fetch_site == "none" and fetch_mode != "navigate")
