"""Chromium for both recording and replay: switches that prevent requests of its own, and trust in our certificates.

A page must meet the same browser when it is replayed as when it was recorded. Standard library only: the recording
proxy's Python loads this too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from base.places import tool
from base.processes import run_program
from browsers.window import Window

# The program itself; the wrapper in /usr/bin adds switches.
BINARY = Path("/usr/lib/chromium/chromium")

# The address of the browser's own services. Their real hosts may be among those of the page.
NOWHERE_HOST = "browser.invalid"
NOWHERE = f"https://{NOWHERE_HOST}"

# Chromium 156 no longer has these, but an earlier one may be installed.
FORMER_FEATURES = (
    "OptimizationGuideModelDownloading",
    "OptimizationHintsFetching",
    "CertificateTransparencyComponentUpdater",
)
# Each of these features sends requests that no page made.
DISABLED_FEATURES = (
    *FORMER_FEATURES,
    "NetworkTimeServiceQuerying",
    "OptimizationTargetPrediction",
    "DialMediaRouteProvider",
    "UseDnsHttpsSvcb",
    "DnsOverHttpsUpgrade",
)

# The switches of all loads, except `disable-features`: Chromium accepts it only once, so it is composed elsewhere.
COMMON_SWITCHES = (
    # Without tabs and address bar the window has the page's size, and its film shows nothing else.
    "app=data:,",
    "no-pings",
    "disable-gpu",
    "disable-extensions",
    f"gaia-url={NOWHERE}",
    f"google-apis-url={NOWHERE}",
    f"component-updater=url-source={NOWHERE}",
    "disable-component-extensions-with-background-pages",
)
# WebRTC must send no UDP, which the rules for names do not restrict. Chromium ignores unknown switches, and this one
# once had another name: tests/measure/live/test_live_addresses.py checks that no UDP is sent, and
# tests/browsers/test_chromium_knows_switches.py that Chromium knows all switches.
WITHOUT_WEBRTC = "webrtc-ip-handling-policy=disable_non_proxied_udp"


def phone(window: Window) -> dict[str, Any]:
    """The settings that make a page believe that `window` belongs to a phone: ChromeDriver's `mobileEmulation`."""
    measures = {"width": window.width, "height": window.height, "pixelRatio": window.pixel_ratio}
    return {
        "deviceMetrics": {**measures, "mobile": True, "touch": True},
        "clientHints": {"platform": "Android", "mobile": True, **({"model": window.model} if window.model else {})},
    }


def trust(certificate: Path, home: Path, run_as: Sequence[str | Path] = ()) -> None:
    """Make browsers with this HOME accept the certificate authority of `certificate`.

    A HOME that already trusts one does not change. `run_as` is the start of a command line that runs as the browser's
    user. Raises EyelevelError.
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
        run_program(command, f"the browser cannot be made to trust {certificate}")
