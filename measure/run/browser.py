"""What Browsertime and Chromium are told for one page load.

Every wait is the same for every network and protocol: they shift Speed Index and the last visual change.
"""

import os
from pathlib import Path
from typing import Any

from base.chromium import (
    BINARY,
    COMMON_SWITCHES,
    DESKTOP,
    DISABLED_FEATURES,
    MOBILE,
    MOBILE_PIXEL_RATIO,
    Window,
    phone,
)
from base.places import tool
from record.site import Site
from tuning.networks import Network
from tuning.protocols import Protocol

# Without a pause here navigation may begin while the browser still starts up.
SETTLE_MS = 500
# What a load may take is worked out from, where the network has no limit.
UNLIMITED_MBPS = 1000.0
# Between the start of the film and the navigation: some frames of orange, by which the film's zero is found.
ORANGE_MS = 200
# A request to a host not asked before takes three round trips (TCP, TLS, HTTP): 2.3 s in the slowest network.
QUIET_MS = 3000
# The same for a page that asks for nothing after its load event.
STATIC_QUIET_MS = 100
POLL_MS = 200
FRAMERATE = 30

# For how long Chromium tries to connect over TCP (net/socket/transport_connect_job.cc). Over QUIC it would give up
# after 4 s without a packet, which a lossy network reaches, and the load would fail with one protocol alone.
CONNECT_S = 240
PAGE_COMPLETE = Path(__file__).with_name("page_complete.js")
NETLOG = "netlog.json"


def settings(quiet_ms: int = QUIET_MS) -> dict[str, object]:
    """What is the same for every load and matters to its result. `quiet_ms`: see `browsertime_config`."""
    return {
        "settle_ms": SETTLE_MS,
        "orange_ms": ORANGE_MS,
        "quiet_ms": quiet_ms,
        "poll_ms": POLL_MS,
        "framerate": FRAMERATE,
        "connect_s": CONNECT_S,
        "desktop": [DESKTOP.width, DESKTOP.height],
        "mobile": [MOBILE.width, MOBILE.height],
        "mobile_pixel_ratio": MOBILE_PIXEL_RATIO,
    }


def window(site: Site) -> Window:
    """The window `site` was recorded in, as far as its index tells."""
    usual = MOBILE if "Mobile" in (site.user_agent or "") else DESKTOP
    width, height = site.viewport or (usual.width, usual.height)
    # The film's encoder wants even numbers.
    return Window(width + width % 2, height + height % 2, usual.mobile)


def load_limit_s(site: Site, network: Network) -> float:
    """How long a load may take before it has failed; the same for every protocol.

    Four times what one TCP connection would need for the whole site, after Mathis et al. (CCR 1997):
    rate <= (MSS / RTT) * 1.22 / sqrt(p), and a minute on top.
    """
    total_bits = 8 * sum(exchange.bytes for exchange in site.exchanges)
    rate_bps = (network.down_mbps or UNLIMITED_MBPS) * 1e6
    if network.down_loss and network.min_rtt_ms:
        mathis_bps = 1460 * 8 / (network.min_rtt_ms / 1e3) * 1.22 / network.down_loss**0.5
        rate_bps = min(rate_bps, mathis_bps)
    return 60 + 4 * total_bits / rate_bps


def browsertime_config(
    site: Site,
    protocol: Protocol,
    limit_s: float,
    folder: Path,
    display: int,
    film: bool = True,
    quiet_ms: int = QUIET_MS,
) -> dict[str, Any]:
    """Browsertime's configuration for one load of `site` on `display`, with results in `folder`.

    `quiet_ms`: for how long nothing must have been asked for before the page counts as finished.
    """
    limit_ms = round(limit_s * 1000)
    shown = window(site)
    chrome: dict[str, Any] = {
        "binaryPath": str(BINARY),
        "chromedriverPath": str(tool("chromedriver")),
        "ignoreCertificateErrors": False,
        "args": [*_switches(site, folder), *_transport_switches(protocol)],
    }
    config: dict[str, Any] = {
        "browser": "chrome",
        "iterations": 1,
        "browserRestartTries": 1,
        "retries": 0,
        "resultDir": str(folder),
        "useSameDir": True,
        "gzipHar": True,
        "viewPort": f"{shown.width}x{shown.height}",
        "chrome": chrome,
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
        "timeouts": {
            "browserStart": 60_000,
            "pageLoad": limit_ms,
            "script": limit_ms,
            "pageCompleteCheck": limit_ms,
        },
    }
    if site.user_agent:
        config["userAgent"] = site.user_agent
    if shown.mobile:
        chrome["mobileEmulation"] = _phone(shown, site.user_agent)
    return config


def _phone(shown: Window, user_agent: str | None) -> dict[str, Any]:
    """Browsertime wants the measures at the top, ChromeDriver takes them from `deviceMetrics`."""
    measures = {"width": shown.width, "height": shown.height, "pixelRatio": MOBILE_PIXEL_RATIO}
    return {**measures, **phone(shown), "userAgent": user_agent}


def _transport_switches(protocol: Protocol) -> list[str]:
    if protocol.transport == "tcp":
        return ["disable-quic", *(["enable-features=EnableTLS13EarlyData"] if protocol.early_data else [])]
    return [
        "enable-quic",
        "quic-version=h3",
        # Also what makes Chromium accept the testbed's own authority for QUIC.
        "origin-to-force-quic-on=*",
        *([f"quic-connection-options={','.join(protocol.connection_options)}"] if protocol.connection_options else []),
    ]


def _switches(site: Site, folder: Path) -> list[str]:
    """Chromium's switches beyond Browsertime's own."""
    hosts = ",".join(f"EXCLUDE {host}" for host in site.addresses)
    switches = [
        *COMMON_SWITCHES,
        f"log-net-log={folder / NETLOG}",
        "net-log-capture-mode=Default",
        f"host-resolver-rules=MAP * ~NOTFOUND,{hosts}",
        "no-proxy-server",
        # Given for every protocol, though it is QUIC's alone.
        "force-fieldtrials=QUIC/Enabled",
        "force-fieldtrial-params=QUIC.Enabled:"
        f"max_time_before_crypto_handshake_seconds/{CONNECT_S}"
        f"/max_idle_time_before_crypto_handshake_seconds/{CONNECT_S}",
        # Browsertime adds its own list to this one.
        f"disable-features={','.join(DISABLED_FEATURES)}",
    ]
    # Chromium's own sandbox refuses to work for root; the replay's namespaces are what holds it.
    return [*switches, "no-sandbox"] if os.geteuid() == 0 else switches
