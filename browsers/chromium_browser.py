"""Chromium as a browser of the testbed: its switches for a load, and its netlog."""

import gzip
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from base.jail import file_in
from base.places import tool
from browsers.chromium.known_servers import HTTPS_PORT, write_known_servers
from browsers.chromium.netlog import parsed_once, read_handshakes, read_netlog, read_streams, read_transfer
from browsers.chromium.program import (
    BINARY,
    COMMON_SWITCHES,
    DISABLED_FEATURES,
    WITHOUT_WEBRTC,
    phone,
    trust,
)
from browsers.contract import HOME, Browser, Page, Request, StreamRequest, Transfer
from browsers.window import MOBILE
from tuning.protocols import HTTPS_RECORD, VISIT_BEFORE, Protocol

# How long Chromium tries to connect over TCP (net/socket/transport_connect_job.cc). Over QUIC it would give up after 4
# s without a packet. Lossy networks reach these 4 s, so loads over QUIC would fail where loads over TCP do not.
CONNECT_S = 240
# The feature by which Chromium opens a second connection when the first takes long.
BACKUP = "PermitTcpSocketPoolConnectBackupJobs"
# The feature by which Chromium also queries HTTPS records of names.
HTTPS_RECORDS = "UseDnsHttpsSvcb"
NETLOG = "netlog.json"
# The limit of a netlog. Demo sites need some MB; a page that never stops sending requests needs 14 MB a second, and a
# third more for each request over QUIC. Beyond the limit, Chromium drops the beginning of the log, and the load does
# not count, over any protocol.
NETLOG_MB = 200
# Chromium's names for its processes (content/public/common/content_switches.cc) → the part that each plays.
PROCESS_PARTS = {
    "renderer": "renderer",
    "network.mojom.NetworkService": "network",
    "gpu-process": "gpu",
}
# Each process of Chromium has one of these switches: the first one that of its profile, the others their type.
BUILDS_SWITCHES = ("--user-data-dir=", "--type=")
FILES = Path(__file__).with_name("chromium")
PROFILE = "profile"
# A reserved port (RFC 6335), which no server uses.
UNUSED_PORT = 1


class Chromium(Browser):
    """Chromium, driven by Browsertime through ChromeDriver."""

    name = "chromium"
    programs: ClassVar = {"chromium": "--version", "chromedriver": "--version"}
    version_line = r"(?:Chromium|Google Chrome(?: [A-Za-z ]+)?) (\d+)\."
    driver = "chromedriver"
    driver_line = r"ChromeDriver (\d+)\."
    network_log = f"{NETLOG}.gz"
    changes = (FILES / "requests_under_way.mjs",)
    return_visit = FILES / "return_visit.mjs"

    def measured_files(self) -> dict[str, Path]:
        return {name: BINARY if name == "chromium" else file for name, file in self.files().items()}

    def settings(self) -> dict[str, Any]:
        return {"connect_s": CONNECT_S, "mobile_pixel_ratio": MOBILE.pixel_ratio}

    def browsertime_options(
        self, page: Page, protocol: Protocol, connection_options: tuple[str, ...], results: Path
    ) -> dict[str, Any]:
        known, version = page.authorities if protocol.browser_knows_servers else (), protocol.http_version
        if (other := protocol.alternative_service) and protocol.discovery == VISIT_BEFORE:
            known, version = page.authorities, other.http_version
        write_known_servers(results / PROFILE, page.url, known, version)
        rules = ["MAP * ~NOTFOUND", *(f"EXCLUDE {host}" for host in page.hosts)]
        without = [*DISABLED_FEATURES, *([BACKUP] if protocol.backup_connections is False else [])]
        if protocol.discovery == HTTPS_RECORD:
            without.remove(HTTPS_RECORDS)
        # If the browser may fall back to TCP, it gives up QUIC as early as on the web.
        limit_s = None if other else CONNECT_S
        switches = _switches(rules, results, without, limit_s, allows_0rtt=not protocol.needs_hello_retry)
        if other:
            return self._options(page, results, [*switches, *_alternative_switches(page, other)])
        return self._options(page, results, [*switches, *_protocol_switches(protocol, connection_options)])

    def page_refusal(self, page: Page, protocol: Protocol) -> str | None:
        if page.proxy:
            return "it cannot use a CONNECT-UDP proxy, which a hop of kind masque is; firefox can"
        port = urlsplit(page.url).port or HTTPS_PORT
        if protocol.discovery == HTTPS_RECORD and port != HTTPS_PORT:
            return f"{protocol.name} has HTTPS records for port {HTTPS_PORT}, and {page.url} is at port {port}"
        return None

    def live_options(self, page: Page, addresses: Mapping[str, str], results: Path) -> dict[str, Any]:
        # The first matching rule applies, also to a host that is already an address (net/base/host_mapping_rules.cc).
        rules = [f"MAP {host} {_bracketed(address)}" for host, address in addresses.items()]
        switches = _switches([*rules, "MAP * ~NOTFOUND"], results)
        # WebRTC sends UDP regardless of these rules.
        return self._options(page, results, [*switches, "enable-quic", WITHOUT_WEBRTC])

    def trust(self, certificate: Path, results: Path) -> None:
        trust(certificate, results / HOME)

    def keep_network_log(self, results: Path, folder: Path) -> None:
        files = [log] if (log := file_in(results, NETLOG)) and log.stat().st_size else _unfinished(results)
        if not files:
            return
        with gzip.open(folder / self.network_log, "wb", compresslevel=3) as compressed:
            for file in files:
                with file.open("rb") as plain:
                    shutil.copyfileobj(plain, compressed)

    def log_parsed_once(self, folder: Path) -> AbstractContextManager[None]:
        return parsed_once(folder / self.network_log)

    def read_requests(self, folder: Path) -> list[Request]:
        return read_netlog(folder / self.network_log, NETLOG_MB << 20)

    def read_streams(self, folder: Path) -> list[StreamRequest]:
        return read_streams(folder / self.network_log)

    def read_transfer(self, folder: Path, began_s: float, ended_s: float) -> Transfer | None:
        return read_transfer(folder / self.network_log, began_s, ended_s)

    def read_handshakes(self, folder: Path) -> dict[str, float]:
        return read_handshakes(folder / self.network_log)

    def was_sent(self, entry: Mapping[str, Any]) -> bool:
        # Chromium answers some requests itself, without a server: redirects (HSTS, Critical-CH), and responses of a
        # service worker.
        return bool(entry.get("serverIPAddress"))

    def part(self, command: str) -> str | None:
        words = command.split(" ")
        if self.build:
            # It may have any name, and a script may start yet another program.
            if not any(word.startswith(BUILDS_SWITCHES) for word in words[1:]):
                return None
        elif Path(words[0]).name != BINARY.name:
            return None
        # Other processes (storage, sound) hardly run, and count as the browser's. A renderer starts as a zygote.
        kinds = re.findall(r"--(?:utility-sub-)?type=(\S+)", command)
        return next((part for kind, part in PROCESS_PARTS.items() if kind in kinds), "browser")

    def screenshot_command(self, url: str, picture: Path) -> list[str | Path]:
        switches = [f"--{switch}" for switch in COMMON_SWITCHES if not switch.startswith("app=")]
        program = self.build.program if self.build else BINARY
        command: list[str | Path] = [program, "--headless", "--no-first-run", *switches]
        return [*command, f"--screenshot={picture}", url]

    def _options(self, page: Page, results: Path, switches: Collection[str]) -> dict[str, Any]:
        build = self.build
        chrome: dict[str, Any] = {
            "binaryPath": str(build.program if build else BINARY),
            "chromedriverPath": str(build.driver if build else tool("chromedriver")),
            "ignoreCertificateErrors": False,
            "args": [f"user-data-dir={results / PROFILE}", *switches],
        }
        if page.window.mobile:
            chrome["mobileEmulation"] = _mobile_emulation(page)
        return {"browser": "chrome", "chrome": chrome}


BROWSER = Chromium()


def _mobile_emulation(page: Page) -> dict[str, Any]:
    """The settings of a phone in Browsertime's form: it wants the dimensions at the top, ChromeDriver in
    `deviceMetrics`."""
    window = page.window
    measures = {"width": window.width, "height": window.height, "pixelRatio": window.pixel_ratio}
    # By default, Chromium chooses its user agent itself.
    user_agent = {"userAgent": page.user_agent} if page.user_agent else {}
    return {**measures, **phone(window), **user_agent}


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _protocol_switches(protocol: Protocol, connection_options: tuple[str, ...]) -> list[str]:
    if protocol.transport == "tcp":
        return ["disable-quic", *(["enable-features=EnableTLS13EarlyData"] if protocol.early_data else [])]
    return [
        "enable-quic",
        "quic-version=h3",
        # This also makes Chromium accept the testbed's certificate authority for QUIC.
        "origin-to-force-quic-on=*",
        *([f"quic-connection-options={','.join(connection_options)}"] if connection_options else []),
    ]


def _alternative_switches(page: Page, other: Protocol) -> list[str]:
    """The switches that allow Chromium to use QUIC with the servers of a page; Chromium decides when it does."""
    return [
        "enable-quic",
        "quic-version=h3",
        # Chromium accepts the testbed's certificate authority over QUIC only for the hosts in this switch. It does not
        # force QUIC on them, since none of them uses this port.
        "origin-to-force-quic-on=" + ",".join(f"{host}:{UNUSED_PORT}" for host in page.hosts),
        *([f"quic-connection-options={','.join(other.connection_options)}"] if other.connection_options else []),
    ]


def _unfinished(results: Path) -> list[Path]:
    """The parts of a netlog that a killed browser has not yet joined, in their order.

    The first part is the file of constants. The others are files of events, which Chromium writes in turns.
    """
    folder = f"{NETLOG}.inprogress"
    constants = file_in(results, f"{folder}/constants.json")
    if not constants:
        return []
    names = [path.name for path in constants.parent.glob("event_file_*.json")]
    events = [event for name in names if (event := file_in(results, f"{folder}/{name}"))]
    return [constants, *sorted(events, key=lambda event: event.stat().st_mtime_ns)]


def _switches(
    resolver_rules: Collection[str],
    results: Path,
    without: Collection[str] = DISABLED_FEATURES,
    handshake_limit_s: int | None = CONNECT_S,
    *,
    allows_0rtt: bool = True,
) -> list[str]:
    """Chromium's switches beyond those of Browsertime; `without` lists the features to disable.

    QUIC's handshake may take `handshake_limit_s`, or as long as Chromium allows by itself (None).
    """
    limits = ("max_time_before_crypto_handshake_seconds", "max_idle_time_before_crypto_handshake_seconds")
    quic = [f"{limit}/{handshake_limit_s}" for limit in limits if handshake_limit_s is not None]
    # If a HelloRetryRequest rejects 0-RTT, a second connection to a server would hang for 45 s.
    quic.append(f"disable_tls_zero_rtt/{'false' if allows_0rtt else 'true'}")
    return [
        *COMMON_SWITCHES,
        f"log-net-log={results / NETLOG}",
        "net-log-capture-mode=Default",
        f"net-log-max-size-mb={NETLOG_MB}",
        f"host-resolver-rules={','.join(resolver_rules)}",
        "no-proxy-server",
        # These switches concern only QUIC, but are the same for every protocol.
        "force-fieldtrials=QUIC/Enabled",
        f"force-fieldtrial-params=QUIC.Enabled:{'/'.join(quic)}",
        # Browsertime appends its own list to this one.
        f"disable-features={','.join(without)}",
    ]
