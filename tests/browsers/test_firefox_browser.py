"""The settings that Firefox gets, the loads that it refuses, and the part that each of its processes plays."""

from dataclasses import replace
from pathlib import Path

import pytest

from browsers.contract import Page
from browsers.firefox_browser import BROWSER
from browsers.registry import browser_named
from browsers.window import DESKTOP, MOBILE
from measure.run.browser import refusal
from record.demo import generate
from record.site import Site, write_site
from servers.registry import require_served
from tuning import protocols

KNOWN = {protocol.name: protocol for protocol in require_served(protocols.load().values())}
PAGE = Page("https://a.example/", ("a.example", "b.example"), ("a.example", "b.example:8443"), DESKTOP)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return write_site(generate("demo-light"), tmp_path_factory.mktemp("site") / "demo-light")


@pytest.mark.parametrize("name", ["tcp", "tcp+bbr", "tcp+iw20", "tcp+lowat", "tcp+mss1238", "quic", "quic+1con"])
def test_it_loads_over_the_protocols_that_servers_make(site: Site, name: str) -> None:
    assert refusal(BROWSER, KNOWN[name], site) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tcp+0rtt", "early_data"),
        ("quic+0rtt", "early_data"),
        ("tcp+tfo", "fast_open"),
        ("tcp+known", "known_servers must be false"),
        ("tcp+level", "known_servers must be false"),
        ("quic+unknown", "known_servers must be true"),
        ("quic+bbr", "quic_server does as quic+bbr says only if a browser sends TBBR"),
        ("quic+iw10", "quic_server does as quic+iw10 says only if a browser sends IW10"),
        ("quic+1con+2rtt", "P-256 may cost nothing"),
    ],
)
def test_it_refuses_in_one_line_what_it_cannot_do_and_chromium_does_not(site: Site, name: str, reason: str) -> None:
    said = str(refusal(BROWSER, KNOWN[name], site))
    assert said.startswith(f"firefox cannot load over {name}: ")
    assert reason in said
    assert "\n" not in said
    assert refusal(browser_named("chromium"), KNOWN[name], site) is None


def test_it_is_no_phone_and_takes_one_port_of_quic_for_a_host() -> None:
    mobile = replace(PAGE, window=MOBILE)
    several = replace(PAGE, authorities=("a.example", "a.example:8443"))
    assert "phone" in str(BROWSER.page_refusal(mobile, KNOWN["tcp"]))
    assert "a.example has several" in str(BROWSER.page_refusal(several, KNOWN["quic"]))
    assert BROWSER.page_refusal(several, KNOWN["tcp"]) is None


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("/usr/lib/firefox-esr/firefox-esr --marionette -no-remote -profile /tmp/p", "browser"),
        ("/usr/lib/firefox-esr/firefox-esr -contentproc -isForBrowser -prefsHandle 0:1 3 tab", "renderer"),
        ("/usr/lib/firefox-esr/firefox-esr -contentproc -parentBuildID 2026 4 gpu", "gpu"),
        ("/usr/lib/firefox-esr/firefox-esr -contentproc -parentBuildID 2026 1 socket", "network"),
        ("/usr/lib/firefox-esr/firefox-esr -contentproc -parentBuildID 2026 1 forkserver", "browser"),
        ("/home/me/geckodriver --port 1", None),
        ("", None),
    ],
)
def test_its_processes_have_their_parts(command: str, part: str | None) -> None:
    assert BROWSER.part(command) == part


@pytest.mark.needs_firefox
def test_quic_is_asked_of_every_host_at_its_port_and_tcp_of_none(tmp_path: Path) -> None:
    (tmp_path / "home" / "profile").mkdir(parents=True)
    quic, tcp, without = (
        BROWSER.browsertime_options(PAGE, protocol, (), tmp_path)["firefox"]["preference"]
        for protocol in (KNOWN["quic"], KNOWN["tcp"], replace(KNOWN["tcp"], backup_connections=False))
    )
    mapping = "network.http.http3.alt-svc-mapping-for-testing:a.example;h3=:443,b.example;h3=:8443"
    assert mapping in quic and mapping not in tcp
    assert "network.http.http3.enable:true" in quic and "network.http.http3.enable:false" in tcp
    backup = "network.http.connection-retry-timeout:0"
    assert [backup in preferences for preferences in (quic, tcp, without)] == [True, False, True]
