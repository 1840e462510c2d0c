"""Firefox as a browser of the testbed: its preferences for a load, its profile, and its log of requests."""

import gzip
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from base.jail import file_in
from base.places import tool
from base.processes import run_program
from browsers.contract import HOME, Browser, Page, Request
from browsers.firefox.requests import read_requests
from tuning.protocols import BROWSERS_GROUP, Protocol

PROGRAM = "firefox-esr"
# Each process of Firefox has one of these words: the first one that of the driver, the others that of a child.
BUILDS_WORDS = {"--marionette", "-contentproc"}
FILES = Path(__file__).with_name("firefox")
REQUESTS = "requests.jsonl"
# The folder from which the driver makes the profile of the load.
PROFILE = "profile"
# Without tabs, address bar and notes the window has the page's size. Without the status panel, which shows what the
# browser waits for, a film of it shows nothing else.
STYLE = """\
#navigator-toolbox, #navigator-toolbox * { visibility: collapse !important; }
#statuspanel, .notificationbox-stack { display: none !important; }
"""
# How long it tries to connect; the same as for Chromium (`browsers.chromium_browser`).
CONNECT_S = 240
HTTPS_PORT = "443"
# The parts of its processes, by the last word of their command lines. Networking happens in the first process.
PROCESS_PARTS = {"tab": "renderer", "gpu": "gpu", "socket": "network"}

# The preferences that are set in addition to those by which Browsertime keeps Firefox from sending its own requests.
PREFERENCES: dict[str, str | int | bool] = {
    "toolkit.legacyUserProfileCustomizations.stylesheets": True,
    "network.trr.mode": 5,
    "network.dns.disableIPv6": True,
    "network.dns.native_https_query": False,
    "network.http.connection-timeout": CONNECT_S,
    "network.http.tls-handshake-timeout": CONNECT_S,
    "app.normandy.enabled": False,
    "security.OCSP.enabled": 0,
    "security.remote_settings.crlite_filters.enabled": False,
    "security.remote_settings.intermediates.enabled": False,
    # Browsertime's default, taken from Firefox's tests, would disable protection.
    "security.turn_off_all_security_so_that_viruses_can_take_over_this_computer": False,
}
# Preferences for loads over QUIC. With the default value of any of these, Firefox tries TCP as well, or gives up QUIC
# entirely.
QUIC_PREFERENCES: dict[str, str | int | bool] = {
    "network.http.http3.enable": True,
    "network.http.http3.force-use-alt-svc-mapping-for-testing": True,
    "network.http.http3.disable_when_third_party_roots_found": False,
    "network.http.http3.backup_timer_delay": 0,
    "network.http.http3.fallback_to_h2_on_error": False,
    "network.http.connection-retry-timeout": 0,
    "network.http.speculative-parallel-limit": 0,
}
# Preferences for loads through a proxy of CONNECT-UDP. By default, Firefox gives up an HTTP/3 connection in a tunnel
# after a while and tries TCP. It also opens a tunnel for each request to a server until the first tunnel is
# established.
TUNNEL_PREFERENCES: dict[str, str | int | bool] = {
    "network.http.http3.inner_fallback_delay": 0,
    "network.http.max-persistent-connections-per-server": 1,
}
# Without this, a release build contacts Mozilla's servers whatever its preferences say.
ENVIRONMENT = ("MOZ_REMOTE_SETTINGS_DEVTOOLS=1",)


class Firefox(Browser):
    """Firefox ESR, driven by Browsertime through geckodriver."""

    name = "firefox"
    programs: ClassVar = {PROGRAM: "--version", "geckodriver": "--version"}
    version_line = r"Mozilla Firefox (\d+)\."
    driver = "geckodriver"
    driver_line = r"geckodriver (\d+)\."
    driver_has_its_version = False
    network_log = "netlog-firefox.jsonl.gz"
    # The script of the module that is loaded last runs first (`privileged_script.mjs`). So Firefox gets its proxy
    # before the log begins, and the log lacks Firefox's requests to the proxy before the page.
    changes = (FILES / "network_log.mjs", FILES / "requests_under_way.mjs", FILES / "use_proxy.mjs")
    reads = (FILES,)
    sends_connection_options = False

    def settings(self) -> dict[str, Any]:
        return {"preferences": PREFERENCES, "quic_preferences": QUIC_PREFERENCES, "environment": list(ENVIRONMENT)}

    def browsertime_options(
        self, page: Page, protocol: Protocol, connection_options: tuple[str, ...], results: Path
    ) -> dict[str, Any]:
        preferences = {**PREFERENCES, **_protocol_preferences(page, protocol)}
        style = results / HOME / PROFILE / "chrome" / "userChrome.css"
        style.parent.mkdir(exist_ok=True)
        style.write_text(STYLE)
        firefox = {
            "binaryPath": str(self._binary()),
            "geckodriverPath": str(self.build.driver if self.build else tool("geckodriver")),
            "profileTemplate": str(results / HOME / PROFILE),
            "preference": [f"{name}:{_text(value)}" for name, value in preferences.items()],
            "env": list(ENVIRONMENT),
            "acceptInsecureCerts": False,
            "disableSafeBrowsing": True,
            "disableTrackingProtection": True,
            **({"connectUdp": {"proxy": list(page.proxy), "hosts": list(page.hosts)}} if page.proxy else {}),
        }
        return {"browser": "firefox", "firefox": firefox}

    def trust(self, certificate: Path, results: Path) -> None:
        profile = results / HOME / PROFILE
        profile.mkdir(parents=True)
        certutil: list[str | Path] = [tool("certutil"), "-d", f"sql:{profile}"]
        for options in (["-N", "--empty-password"], ["-A", "-t", "C,,", "-n", "eyelevel", "-i", certificate]):
            run_program([*certutil, *options], f"Firefox cannot be made to trust {certificate}")

    def keep_network_log(self, results: Path, folder: Path) -> None:
        if log := file_in(results, REQUESTS):
            with log.open("rb") as plain, gzip.open(folder / self.network_log, "wb", compresslevel=3) as compressed:
                shutil.copyfileobj(plain, compressed)

    def read_requests(self, folder: Path) -> list[Request]:
        return read_requests(folder / self.network_log)

    def part(self, command: str) -> str | None:
        words = command.split()
        if self.build:
            # It may have any name, and a script may start yet another program.
            if BUILDS_WORDS.isdisjoint(words):
                return None
        elif not words or Path(words[0]).name != PROGRAM:
            return None
        return PROCESS_PARTS.get(words[-1], "browser") if "-contentproc" in words else "browser"

    def screenshot_command(self, url: str, picture: Path) -> list[str | Path]:
        return [self._binary(), "--headless", "--no-remote", "--screenshot", picture, url]

    def refusal(self, protocol: Protocol) -> str | None:
        if protocol.alternative:
            return "it cannot be measured with servers that speak two protocols; chromium can"
        if protocol.early_data:
            return "early_data needs a browser that returns, and no such visit is made with Firefox"
        if protocol.fast_open:
            return "fast_open was not shown to work with Firefox"
        if protocol.tls_group != BROWSERS_GROUP:
            return (
                f"Firefox offers keys for more groups than {BROWSERS_GROUP}, so {protocol.tls_group} may cost nothing"
            )
        if protocol.in_kernel and protocol.known_servers:
            return "known_servers must be false: Firefox cannot learn in advance which servers speak HTTP/2"
        if not protocol.in_kernel and not protocol.browser_knows_servers:
            return "known_servers must be true: Firefox uses QUIC only with servers that it knows to speak QUIC"
        return None

    def page_refusal(self, page: Page, protocol: Protocol) -> str | None:
        if page.window.mobile:
            return (
                "the page was recorded as on a phone, which Firefox cannot imitate: it has no touch and no narrow "
                "window"
            )
        hosts = Counter(authority.partition(":")[0] for authority in page.authorities)
        if not protocol.in_kernel and (several := [host for host, ports in hosts.items() if ports > 1]):
            return f"Firefox can use one QUIC port for a host, and {several[0]} has several"
        return None

    def was_sent(self, entry: Mapping[str, Any]) -> bool:
        # An image from memory appears as an entry of HTTP/1.1 that took no time.
        return any(time > 0 for time in entry["timings"].values())

    def _binary(self) -> Path:
        return self.build.program if self.build else tool(PROGRAM).resolve()


BROWSER = Firefox()


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _protocol_preferences(page: Page, protocol: Protocol) -> dict[str, str | int | bool]:
    if protocol.in_kernel:
        without_backup = {"network.http.connection-retry-timeout": 0} if protocol.backup_connections is False else {}
        return {"network.http.http3.enable": False, **without_backup}
    hosts = dict(authority.partition(":")[::2] for authority in page.authorities)
    services = ",".join(f"{host};h3=:{port or HTTPS_PORT}" for host, port in hosts.items())
    tunnel = TUNNEL_PREFERENCES if page.proxy else {}
    return {**QUIC_PREFERENCES, **tunnel, "network.http.http3.alt-svc-mapping-for-testing": services}
