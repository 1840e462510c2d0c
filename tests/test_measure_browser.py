"""What the browser is told: the same for every protocol but for the transport."""

from pathlib import Path
from typing import Any

import pytest

from base.chromium import Window
from measure.run import browser
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from tuning import networks, protocols

NETWORKS = networks.load()
PROTOCOLS = protocols.load()
PHONE = "Mozilla/5.0 (Linux; Android 8.0.0; Pixel 2) Chrome/73.0 Mobile Safari/537.36"


def site(folder: Path, **more: Any) -> Site:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"x" * 1_000_000), "192.0.2.1")
    port = Exchange("GET", "https://b.example:8443/", Response(200, "OK", (), b"x"), "192.0.2.2")
    return write_site(Recording(page.url, (page, port), {"tool": "test"}, **more), folder / "site")


def switches(site: Site, protocol: str) -> list[str]:
    config = browser.browsertime_config(site, PROTOCOLS[protocol], 300, Path("/run/results"), 7)
    return list(config["chrome"]["args"])


def test_quic_is_enforced_with_the_protocols_options(tmp_path: Path) -> None:
    told = switches(site(tmp_path), "quic+bbr")
    assert {"enable-quic", "origin-to-force-quic-on=*", "quic-version=h3", "quic-connection-options=TBBR"} <= set(told)
    assert "disable-quic" not in told


def test_tcp_is_enforced(tmp_path: Path) -> None:
    told = switches(site(tmp_path), "tcp+")
    assert "disable-quic" in told
    assert not any("force-quic" in switch or "enable-quic" in switch for switch in told)


def test_protocols_differ_in_nothing_but_the_transport(tmp_path: Path) -> None:
    recorded = site(tmp_path)
    # Early data needs a visit before, which makes it another experiment.
    configs = [
        browser.browsertime_config(recorded, protocol, 300, Path("/run/results"), 7)
        for protocol in PROTOCOLS.values()
        if not protocol.early_data
    ]
    for config in configs:
        config["chrome"]["args"] = [switch for switch in config["chrome"]["args"] if "quic" not in switch]
    assert all(config == configs[0] for config in configs)


def test_only_recorded_hosts_are_asked_for(tmp_path: Path) -> None:
    (rules,) = [switch for switch in switches(site(tmp_path), "tcp") if switch.startswith("host-resolver-rules=")]
    assert rules == "host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE a.example,EXCLUDE b.example"


def test_a_desktop_recording_gets_a_desktop_window(tmp_path: Path) -> None:
    config = browser.browsertime_config(site(tmp_path), PROTOCOLS["tcp"], 300, Path("/run/results"), 7)
    assert config["viewPort"] == "1366x768"
    assert "userAgent" not in config
    assert "mobileEmulation" not in config["chrome"]


def test_a_mobile_recording_gets_a_phone(tmp_path: Path) -> None:
    config = browser.browsertime_config(
        site(tmp_path, user_agent=PHONE), PROTOCOLS["tcp"], 300, Path("/run/results"), 7
    )
    assert config["userAgent"] == PHONE
    assert config["viewPort"] == "412x732"
    assert config["chrome"]["mobileEmulation"]["deviceMetrics"]["mobile"] is True


def test_the_recorded_viewport_is_kept_but_for_the_encoders_even_numbers(tmp_path: Path) -> None:
    assert browser.window(site(tmp_path, viewport=(1280, 801))) == Window(1280, 802, mobile=False)


def test_the_pointer_starts_beside_the_window(tmp_path: Path) -> None:
    shown = browser.window(site(tmp_path))
    width = int(shown.screen.split("x")[0])
    assert width / 2 > shown.width


@pytest.mark.parametrize(("network", "at_least_s", "at_most_s"), [("lte", 63, 64), ("mss", 300, 500)])
def test_a_load_may_take_as_long_as_the_network_needs(
    tmp_path: Path, network: str, at_least_s: float, at_most_s: float
) -> None:
    # 1 MB: 0.76 s of LTE's link; with 3 % loss and 760 ms one connection gets about 100 kbit/s.
    assert at_least_s < browser.load_limit_s(site(tmp_path), NETWORKS[network]) < at_most_s
