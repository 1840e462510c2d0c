"""The programs of a recording, the proxy and the browser, as context managers; each program is in a jail."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.display import DISPLAY
from base.errors import EyelevelError
from base.jail import Jail, jailed
from base.places import PROJECT, tool
from base.processes import running
from browsers.chromium.program import trust
from browsers.window import Window
from record.recorder.browser_options import capabilities, switches
from record.recorder.isolation import enter_private_network, hand_over_listener
from record.recorder.proxy_settings import ProxySettings
from record.recorder.spec import RecordSpec
from record.recorder.traffic import Traffic
from record.recorder.webdriver import Session

ADDON = Path(__file__).with_name("addon.py")
START_LIMIT_S = 60.0

# The only variables of our environment that the programs get, since others may contain secrets: places of programs, and
# settings that a page can see.
ENVIRONMENT_NAMES = re.compile("PATH|LANG|LANGUAGE|LC_.*|TZ|EYELEVEL_.*")

# With its defaults, mitmproxy would listen in its own network, connect to a server before the browser has a request for
# it, forward data that is not HTTP, answer for a host of its own, and hold long requests in memory.
PROXY_OPTIONS = {
    "server": "false",
    "connection_strategy": "lazy",
    "rawtcp": "false",
    "onboarding": "false",
    "stream_large_bodies": "1m",
    "flow_detail": "0",
    "termlog_verbosity": "error",
}


@contextmanager
def proxy(spec: RecordSpec, folder: Path, exchanges: Path) -> Iterator[Traffic]:
    """mitmproxy with a fresh certificate authority, whose key is in `folder`. It writes the exchanges that pass through
    it into `exchanges`.

    The proxy stays in the present network. This process moves into a network of its own, which contains the proxy's
    listening socket.
    """
    options = PROXY_OPTIONS | {"confdir": str(folder)}
    if spec.origin_ca:
        options["ssl_verify_upstream_trusted_ca"] = str(_copy(spec.origin_ca, folder / "origin-ca.pem"))
    # mitmproxy is installed in mitmdump's own Python.
    python = tool("mitmdump").resolve().with_name("python")
    command: list[str | Path] = [python, "-m", "record.recorder.mitmdump", "--scripts", ADDON]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    ours = tuple(PROJECT / package for package in ("base", "browsers", "record"))
    jail = Jail(readable=(python.parent.parent, *ours), writable=(folder, exchanges))
    log = folder.with_suffix(".log")
    events, events_end = os.pipe()
    handover, handover_end = socket.socketpair()
    settings = ProxySettings(exchanges, events_end, handover_end.fileno(), spec.address_policy, spec.keep_cookies)
    python_s = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = _environment(folder) | settings.environment() | python_s
    descriptors = (events_end, handover_end.fileno())
    with (
        handover,
        running("mitmdump", jailed(jail, command), log, environment=environment, pass_fds=descriptors),
    ):
        os.close(events_end)
        handover_end.close()
        enter_private_network()
        hand_over_listener(handover)
        yield Traffic(os.fdopen(events, "rb"))


@contextmanager
def browser(
    window: Window, proxy_port: int, ca: Path, folder: Path, x_sockets: Path, limit_s: float, *, scripted: bool = False
) -> Iterator[Session]:
    """A fresh Chromium that trusts the certificate authority `ca`, with its profile in `folder` and its output in a
    file next to it. `scripted`: its page has a page script.

    The socket of its screen is in `x_sockets`. Raises EyelevelError.
    """
    trust(ca, folder)
    jail = Jail(writable=(folder,), x_sockets=x_sockets)
    environment = _environment(folder) | {"DISPLAY": f":{DISPLAY}"}
    driver = jailed(jail, [tool("chromedriver"), "--port=0"])
    log = folder.with_suffix(".log")
    with running("chromedriver", driver, log, environment=environment, stdout=subprocess.PIPE) as daemon:
        assert daemon.process.stdout
        port = next(
            (int(m[1]) for line in daemon.process.stdout if (m := re.search(rb"success.* on port (\d+)", line))), None
        )
        if port is None:
            daemon.process.wait()
            raise daemon.failure()
        chromium_switches = switches(window, folder / "profile", proxy_port, scripted=scripted)
        yield Session(port, capabilities(window, chromium_switches, limit_s), limit_s)


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a program whose files are in `folder`."""
    ours = {name: value for name, value in os.environ.items() if ENVIRONMENT_NAMES.fullmatch(name)}
    return {**ours, "HOME": str(folder), "TMPDIR": str(folder)}


def _copy(file: Path, copy: Path) -> Path:
    """Copy a file of the user's, which the programs' own user may be unable to read. Raises EyelevelError."""
    try:
        copy.write_bytes(file.read_bytes())
    except OSError as error:
        raise EyelevelError(f"{file} cannot be read: {error.strerror}") from None
    return copy
