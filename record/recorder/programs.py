"""The programs of a recording, each as a block that it runs in: the proxy, the browser."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.chromium import Window, trust
from base.places import PROJECT, tool
from base.processes import running
from record.recorder import capture
from record.recorder.chromium import capabilities, switches
from record.recorder.spec import RecordSpec
from record.recorder.traffic import Traffic
from record.recorder.webdriver import Session

ADDON = Path(__file__).with_name("addon.py")
START_LIMIT_S = 60.0

# The user whom nothing belongs to.
NOBODY = 65534


@contextmanager
def proxy(spec: RecordSpec, folder: Path, captured: Path) -> Iterator[Traffic]:
    """mitmproxy, with an authority of its own that it makes in `folder`; what goes through it is put in `captured`."""
    events, events_end = os.pipe()
    command: list[str | Path] = [tool("mitmdump"), "--listen-host", "127.0.0.1", "--listen-port", "0"]
    options = [f"confdir={folder}", "flow_detail=0", "termlog_verbosity=error"]
    # Servers are asked for nothing but what the browser asks them for.
    options.append("connection_strategy=lazy")
    if spec.origin_ca:
        options.append(f"ssl_verify_upstream_trusted_ca={spec.origin_ca}")
    for option in options:
        command += ["--set", option]
    environment = {
        **os.environ,
        **capture.environment(captured, events_end, spec.keep_cookies),
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
    """A fresh Chromium that trusts `authority`, its profile in `folder`. It runs as nobody when we are root."""
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
        chosen = switches(window, folder / "profile", proxy_port, _sandbox_works(unprivileged))
        yield Session(port, capabilities(window, chosen, limit_s), limit_s)


def _unprivileged() -> list[str | Path]:
    """The beginning of a command that runs what follows without our rights: it reads what the web sends."""
    if os.geteuid() == 0:
        return [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [tool("setpriv"), "--inh-caps=-all", "--ambient-caps=-all"]


def _sandbox_works(unprivileged: list[str | Path]) -> bool:
    """Whether the kernel lets an unprivileged browser make the namespaces of its own sandbox."""
    command = [*unprivileged, tool("unshare"), "--user", "--pid", "--net", "--fork", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
