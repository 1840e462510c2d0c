"""The browser is started in the same way for every protocol, except for the transport."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browsers.browsertime.configuration import QUIET_MS, configuration
from browsers.chromium_browser import BACKUP, BROWSER
from browsers.window import Window
from measure.run import browser
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from servers.registry import server_of
from tuning import networks, protocols
from tuning.protocols import Protocol

NETWORKS = networks.load()
PROTOCOLS = protocols.load()
PHONE = "Mozilla/5.0 (Linux; Android 8.0.0; Pixel 2) Chrome/73.0 Mobile Safari/537.36"


def site(folder: Path, **more: Any) -> Site:
    page = Exchange("GET", "https://a.example/", Response(200, "OK", (), b"x" * 1_000_000), "192.0.2.1")
    port = Exchange("GET", "https://b.example:8443/", Response(200, "OK", (), b"x"), "192.0.2.2")
    return write_site(Recording(page.url, (page, port), {"tool": "test"}, **more), folder / "site")


def config(site: Site, protocol: Protocol) -> dict[str, Any]:
    """Browsertime's configuration for a load of `site` over `protocol`."""
    page, results = browser.page_of(site), site.folder.parent / "results"
    options = server_of(protocol).connection_options(protocol)
    common = configuration(page, results, 7, 300, QUIET_MS, film=True)
    return common | BROWSER.browsertime_options(page, protocol, options, results)


def switches(site: Site, protocol: str) -> list[str]:
    return list(config(site, PROTOCOLS[protocol])["chrome"]["args"])


def test_quic_is_enforced_with_the_protocols_options(tmp_path: Path) -> None:
    given = switches(site(tmp_path), "quic+bbr")
    assert {"enable-quic", "origin-to-force-quic-on=*", "quic-version=h3", "quic-connection-options=TBBR"} <= set(given)
    assert "disable-quic" not in given


def test_tcp_is_enforced(tmp_path: Path) -> None:
    given = switches(site(tmp_path), "tcp+")
    assert "disable-quic" in given
    assert not any("force-quic" in switch or "enable-quic" in switch for switch in given)


@pytest.mark.slow
def test_protocols_differ_in_nothing_but_the_transport(tmp_path: Path) -> None:
    recorded = site(tmp_path)
    # Early data and alternatives are other experiments: one needs an earlier visit, the other lets the browser choose.
    configs = [config(recorded, one) for one in PROTOCOLS.values() if not (one.early_data or one.alternative_service)]
    for each in configs:
        args = [switch for switch in each["chrome"]["args"] if "quic" not in switch]
        # Two switches may differ: that of 0-RTT, which a HelloRetryRequest would reject, and that of backup
        # connections, which some protocols do not have.
        args = [switch.replace("zero_rtt/true", "zero_rtt/false") for switch in args]
        each["chrome"]["args"] = [switch.replace(f",{BACKUP}", "") for switch in args]
    assert all(each == configs[0] for each in configs)


def test_backup_connections_are_switched_off_where_there_are_to_be_none(tmp_path: Path) -> None:
    for name, is_off in (("tcp+", False), ("tcp+lowat+known", False), ("tcp+level", True), ("quic", False)):
        assert any(BACKUP in switch for switch in switches(site(tmp_path), name)) is is_off


def test_the_browser_does_not_try_0_rtt_where_a_hello_retry_request_would_reject_it(tmp_path: Path) -> None:
    for name, is_disabled in (("quic", "false"), ("quic+1con", "false"), ("quic+1con+2rtt", "true")):
        (params,) = [one for one in switches(site(tmp_path / name), name) if one.startswith("force-fieldtrial-params=")]
        assert f"/disable_tls_zero_rtt/{is_disabled}" in params


def test_a_browser_that_may_use_tcp_instead_gives_quic_up_as_early_as_on_the_web(tmp_path: Path) -> None:
    for name, is_limited in (("quic", True), ("deployed-cold", False)):
        (params,) = [one for one in switches(site(tmp_path / name), name) if one.startswith("force-fieldtrial-params=")]
        assert ("before_crypto_handshake" in params) is is_limited


def test_https_records_are_asked_for_where_there_are_any_and_a_page_at_another_port_is_refused(tmp_path: Path) -> None:
    recorded = site(tmp_path)
    for name, are_asked_for in (("quic", False), ("deployed-cold", False), ("deployed-dns", True)):
        (without,) = [one for one in switches(recorded, name) if one.startswith("disable-features=")]
        assert ("UseDnsHttpsSvcb" not in without) is are_asked_for
        page = replace(browser.page_of(recorded), url="https://b.example:8443/")
        assert ("at port 8443" in (BROWSER.page_refusal(page, PROTOCOLS[name]) or "")) is are_asked_for
        assert BROWSER.page_refusal(browser.page_of(recorded), PROTOCOLS[name]) is None


def test_only_recorded_hosts_are_asked_for(tmp_path: Path) -> None:
    (rules,) = [switch for switch in switches(site(tmp_path), "tcp") if switch.startswith("host-resolver-rules=")]
    assert rules == "host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE a.example,EXCLUDE b.example"


def test_a_desktop_recording_gets_a_desktop_window(tmp_path: Path) -> None:
    desktop = config(site(tmp_path), PROTOCOLS["tcp"])
    assert desktop["viewPort"] == "1366x768"
    assert "userAgent" not in desktop
    assert "mobileEmulation" not in desktop["chrome"]


def test_a_mobile_recording_gets_a_phone(tmp_path: Path) -> None:
    phone = config(site(tmp_path, user_agent=PHONE), PROTOCOLS["tcp"])
    assert phone["userAgent"] == PHONE
    assert phone["viewPort"] == "412x732"
    assert phone["chrome"]["mobileEmulation"]["deviceMetrics"]["mobile"] is True


def test_the_recorded_viewport_is_kept_but_for_the_encoders_even_numbers(tmp_path: Path) -> None:
    assert browser.window(site(tmp_path, viewport=(1280, 801))) == Window(1280, 802, mobile=False)


def test_the_pointer_starts_beside_the_window(tmp_path: Path) -> None:
    window = browser.window(site(tmp_path))
    width = int(window.screen.split("x")[0])
    assert width / 2 > window.width


@pytest.mark.parametrize(("network", "at_least_s", "at_most_s"), [("lte", 63, 64), ("mss", 300, 500)])
def test_a_load_may_take_as_long_as_the_network_needs(
    tmp_path: Path, network: str, at_least_s: float, at_most_s: float
) -> None:
    # 1 MB takes 0.76 s on LTE. On MSS, with 3 % loss in each direction and a round trip of 760 ms, one connection gets
    # about 100 kbit/s.
    assert at_least_s < browser.load_limit_s(site(tmp_path), NETWORKS[network]) < at_most_s
