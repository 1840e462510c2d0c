"""The programs of a recording, each as a block that it runs in: the proxy, the browser."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.places import PROJECT, tool
from base.processes import running
from browsers.chromium.program import trust
from browsers.window import Window
from record.recorder import proxy_output
from record.recorder.browser_options import capabilities, switches
from record.recorder.spec import RecordSpec
from record.recorder.traffic import Traffic
from record.recorder.webdriver import Session

ADDON = Path(__file__).with_name("addon.py")
START_LIMIT_S = 60.0

# The user that owns no files.
NOBODY = 65534


@contextmanager
def proxy(spec: RecordSpec, folder: Path, exchanges: Path) -> Iterator[Traffic]:
    """mitmproxy with a fresh authority, whose key is in `folder`. The exchanges that pass it are put in `exchanges`."""
    events, events_end = os.pipe()
    command: list[str | Path] = [tool("mitmdump"), "--listen-host", "127.0.0.1", "--listen-port", "0"]
    options = [f"confdir={folder}", "flow_detail=0", "termlog_verbosity=error"]
    # mitmproxy connects to a server only when the browser has a request for it.
    options.append("connection_strategy=lazy")
    if spec.origin_ca:
        options.append(f"ssl_verify_upstream_trusted_ca={spec.origin_ca}")
    for option in options:
        command += ["--set", option]
    environment = {
        **os.environ,
        **proxy_output.environment(exchanges, events_end, spec.keep_cookies),
        "PYTHONPATH": str(PROJECT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command += ["--scripts", ADDON]
    with running("mitmdump", command, folder / "log", environment=environment, pass_fds=(events_end,)):
        os.close(events_end)
        yield Traffic(os.fdopen(events, "rb"))


@contextmanager
def browser(
    window: Window, display: int, proxy_port: int, authority: Path, folder: Path, limit_s: float
) -> Iterator[Session]:
    """A fresh Chromium that trusts `authority`, with its profile in `folder`. When we are root it runs as nobody."""
    unprivileged = _unprivileged()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "DISPLAY": f":{display}"}
    # The browser's user may not enter the proxy's folder, where the authority's key lies too.
    readable = folder / "authority.pem"
    readable.write_bytes(authority.read_bytes())
    trust(readable, folder, unprivileged)
    log = folder.with_suffix(".log")
    driver = [*unprivileged, tool("chromedriver"), "--port=0"]
    with running("chromedriver", driver, log, environment=environment, stdout=subprocess.PIPE) as daemon:
        assert daemon.process.stdout
        port = next(
            (int(m[1]) for line in daemon.process.stdout if (m := re.search(rb"success.* on port (\d+)", line))), None
        )
        if port is None:
            daemon.process.wait()
            raise daemon.failure()
        chromium_switches = switches(window, folder / "profile", proxy_port, _sandbox_works(unprivileged))
        yield Session(port, capabilities(window, chromium_switches, limit_s), limit_s)


def _unprivileged() -> list[str | Path]:
    """The beginning of a command line that takes our rights from the rest: the browser reads what the web sends."""
    if os.geteuid() == 0:
        return [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [tool("setpriv"), "--inh-caps=-all", "--ambient-caps=-all"]


def _sandbox_works(unprivileged: list[str | Path]) -> bool:
    """Whether the kernel lets an unprivileged browser make the namespaces of its sandbox."""
    command = [*unprivileged, tool("unshare"), "--user", "--pid", "--net", "--fork", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
