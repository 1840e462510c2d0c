"""Chromium as both the recorder and the replay use it: what keeps it from sending requests of itself, and its trust.

A page must meet the same browser when it is replayed as when it was recorded. Standard library only: the
recording proxy's Python loads this too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from base.places import tool
from base.processes import run_program
from browsers.window import Window

# Not the wrapper in /usr/bin, which adds switches.
BINARY = Path("/usr/lib/chromium/chromium")

# Where the browser looks for its services. Their real hosts may be among those of the page.
NOWHERE_HOST = "browser.invalid"
NOWHERE = f"https://{NOWHERE_HOST}"

# Chromium 156 does not have these any more; earlier ones may be installed.
FORMER_FEATURES = (
    "OptimizationGuideModelDownloading",
    "OptimizationHintsFetching",
    "CertificateTransparencyComponentUpdater",
)
# Each of these asks for something that no page asked for.
DISABLED_FEATURES = (
    *FORMER_FEATURES,
    "NetworkTimeServiceQuerying",
    "OptimizationTargetPrediction",
    "DialMediaRouteProvider",
    "UseDnsHttpsSvcb",
    "DnsOverHttpsUpgrade",
)

# The switches of all loads, but for `disable-features`: Chromium takes only one of these, so another place composes it.
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
# WebRTC sends no UDP, for which no rule about names holds. Chromium ignores switches that it does not know, and this
# one had another name once: tests/measure/live/test_live_addresses.py sees that none is sent, and
# tests/browsers/test_chromium_knows_switches.py that it knows all of them.
WITHOUT_WEBRTC = "webrtc-ip-handling-policy=disable_non_proxied_udp"


def phone(window: Window) -> dict[str, Any]:
    """The settings that make a page believe that `window` is a phone's: ChromeDriver's `mobileEmulation`."""
    measures = {"width": window.width, "height": window.height, "pixelRatio": window.pixel_ratio}
    return {
        "deviceMetrics": {**measures, "mobile": True, "touch": True},
        "clientHints": {"platform": "Android", "mobile": True, **({"model": window.model} if window.model else {})},
    }


def trust(certificate: Path, home: Path, run_as: Sequence[str | Path] = ()) -> None:
    """Make browsers with this HOME accept the certificate authority of `certificate`; a HOME that trusts one already
    stays as it is.

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
        run_program(command, f"the browser cannot be made to trust {certificate}")
