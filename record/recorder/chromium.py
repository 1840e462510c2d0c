"""How the recording browser is set up: its window, its switches, and what keeps it from talking of itself.

Standard library only: the proxy's addon loads it too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

BINARY = Path("/usr/lib/chromium/chromium")

# Where the browser's own services are said to be. Their real hosts may be among those of the page.
NOWHERE_HOST = "browser.invalid"
NOWHERE = f"https://{NOWHERE_HOST}"

# Chromium shrinks a window that would fill the X screen.
SCREEN_MARGIN_PIXELS = 16


@dataclass(frozen=True)
class Window:
    """The part of the page one can see, in CSS pixels, and whether the page believes to be on a phone."""

    width: int
    height: int
    mobile: bool

    @property
    def screen(self) -> str:
        """The X screen it is shown on, as Xvfb wants it."""
        return f"{self.width + SCREEN_MARGIN_PIXELS}x{self.height + SCREEN_MARGIN_PIXELS}x24"


# The windows that sites without a recorded one are replayed in; see measure/browser.py.
DESKTOP = Window(1366, 768, mobile=False)
MOBILE = Window(412, 732, mobile=True)

DISABLED_FEATURES = (
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "DnsOverHttpsUpgrade",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHintsFetching",
    "OptimizationTargetPrediction",
    "Translate",
    "UseDnsHttpsSvcb",
)


def switches(window: Window, profile: Path, proxy_port: int, sandboxed: bool) -> list[str]:
    """Chromium's switches for one recording. Everything goes through the proxy, to loopback addresses too."""
    return [
        # A window without tabs and address bar has the page's size.
        "app=data:,",
        f"window-size={window.width},{window.height}",
        "window-position=0,0",
        f"user-data-dir={profile}",
        f"proxy-server=http://127.0.0.1:{proxy_port}",
        "proxy-bypass-list=<-loopback>",
        "disable-quic",
        "force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "no-pings",
        "disable-gpu",
        "disable-extensions",
        "disable-component-update",
        "disable-domain-reliability",
        "disable-breakpad",
        f"gaia-url={NOWHERE}",
        f"google-apis-url={NOWHERE}",
        f"component-updater=url-source={NOWHERE}",
        "disable-component-extensions-with-background-pages",
        f"disable-features={','.join(DISABLED_FEATURES)}",
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
        options["mobileEmulation"] = {
            "deviceMetrics": {
                "width": window.width,
                "height": window.height,
                "pixelRatio": 1.0,
                "mobile": True,
                "touch": True,
            },
            # ChromeDriver makes the user agent that goes with these.
            "clientHints": {"platform": "Android", "mobile": True},
        }
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
