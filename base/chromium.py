"""Chromium as both the recorder and the replay use it: its windows, what keeps it from talking of itself, its trust.

A page must meet the same browser when it is replayed as when it was recorded. Standard library only: the
recording proxy's Python loads this too.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.places import tool

# Not the wrapper in /usr/bin, which adds switches.
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
        """The X screen it is shown on, as Xvfb wants it.

        Twice as wide as the window in its left half, since the pointer starts in the middle of the screen:
        over the page it would hover over a link, which changes the picture and may fetch something.
        """
        return f"{2 * (self.width + SCREEN_MARGIN_PIXELS)}x{self.height + SCREEN_MARGIN_PIXELS}x24"


# A common desktop window, and Browsertime's default.
DESKTOP = Window(1366, 768, mobile=False)
# What Mahimahi's recordings with a mobile user agent were made with: a Pixel 2's window in CSS pixels, but
# one device pixel for each (they hold none of the images meant for finer screens).
MOBILE = Window(412, 732, mobile=True)
MOBILE_PIXEL_RATIO = 1.0

# Each of these asks for something that no page asked for.
DISABLED_FEATURES = (
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHintsFetching",
    "OptimizationTargetPrediction",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "UseDnsHttpsSvcb",
    "DnsOverHttpsUpgrade",
)

# Without `disable-features`, of which Chromium takes one alone.
COMMON_SWITCHES = (
    # A window without tabs and address bar has the page's size, and a film of it shows nothing else.
    "app=data:,",
    "no-pings",
    "disable-gpu",
    "disable-extensions",
    f"gaia-url={NOWHERE}",
    f"google-apis-url={NOWHERE}",
    f"component-updater=url-source={NOWHERE}",
    "disable-component-extensions-with-background-pages",
)


def phone(window: Window) -> dict[str, Any]:
    """What makes a page believe that `window` is a phone's: ChromeDriver's `mobileEmulation`."""
    measures = {"width": window.width, "height": window.height, "pixelRatio": MOBILE_PIXEL_RATIO}
    return {
        "deviceMetrics": {**measures, "mobile": True, "touch": True},
        "clientHints": {"platform": "Android", "mobile": True},
    }


def trust(certificate: Path, home: Path, run_as: Sequence[str | Path] = ()) -> None:
    """Make browsers with this HOME accept the authority `certificate`; a HOME that has been told one keeps it.

    `run_as` begins the command line of whoever the browser runs as. Raises EyelevelError.
    """
    database = home / ".pki" / "nssdb"
    if database.exists():
        return
    certutil = [*run_as, tool("certutil"), "-d", f"sql:{database}"]
    for command in (
        [*run_as, tool("mkdir"), "-p", database],
        [*certutil, "-N", "--empty-password"],
        [*certutil, "-A", "-t", "C,,", "-n", "eyelevel", "-i", certificate],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EyelevelError(f"the browser cannot be made to trust {certificate}: {done.stderr.strip()}")
