"""A stranger's page learns nothing about the host and its users in a replay, even through a browser that it controls.

A program stands in for such a browser: the driver starts it with the browser's user, rights, files and network.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from base.jail import jail_user
from base.places import PROJECT, ca_certificate, tool
from base.portable import as_argument
from dataset.run_files import FILM_LOG, LOG, TIMINGS
from measure.run.visit_spec import VisitSpec
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from replay import ReplaySpec, run
from tuning import networks, protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser, pytest.mark.loads]

PROTOCOL = protocols.load()["tcp"]
SECRET = "not for strangers"

# Loads a page like `measure.run.visit`, but with another target for Browsertime, or another browser. These write a file
# of their own in place of the film, which is copied out of the replay like a film.
VISIT = """
import sys
from pathlib import Path
import browsers.chromium_browser
from browsers.browsertime import run as browsertime
from measure.run import visit

target, binary, limit_s, ready_s, specification = sys.argv[1:]
browsertime.READY_LIMIT_S = float(ready_s or browsertime.READY_LIMIT_S)
genuine = visit.run_browsertime

def run_browsertime(url, configuration, environment, changes, readable, x_sockets, film_cores, usual_s, log, *turn):
    given = [Path(path) for path in (target, binary) if path.startswith("/")]
    limit = float(limit_s or usual_s)
    readable = [*readable, *given]
    one = target or url
    return genuine(one, configuration, environment, changes, readable, x_sockets, film_cores, limit, log, *turn)

visit.run_browsertime = run_browsertime
if binary:
    browsers.chromium_browser.BINARY = Path(binary)
visit.main(specification)
"""

# A page that tries everything that pages can; the result of each attempt is what it reached, or nothing.
PAGE = """<!doctype html><title>Hostile</title><script>
const socket = (url) => new Promise((done, failed) => {
  const one = new WebSocket(url);
  one.onopen = () => done("opened");
  one.onerror = () => failed();
});
const frame = (url) => new Promise((done, failed) => {
  const one = document.createElement("iframe");
  one.onload = () => { try { done(one.contentDocument.body.innerText); } catch { failed(); } };
  one.src = url;
  document.documentElement.append(one);
});
const attempts = {
  "own server": () => fetch("/again").then((answer) => answer.text()),
  "file by fetch": () => fetch("file:///etc/passwd").then((answer) => answer.text()),
  "file by frame": () => frame("file:///etc/passwd"),
  "loopback by fetch": () => fetch("http://127.0.0.1:PORT/", { mode: "no-cors" }).then(() => "answered"),
  "loopback by socket": () => socket("ws://127.0.0.1:PORT/"),
  "developer tools": () => socket("ws://127.0.0.1:9222/devtools/browser"),
  "browser's page": () => fetch("chrome://version/").then((answer) => answer.text()),
};
const LIMITS = { "own server": 30000 };  // it answers, sooner or later
window.outcome = Promise.all(Object.entries(attempts).map(
  ([name, attempt]) => Promise.race([attempt(), new Promise((_, failed) => setTimeout(failed, LIMITS[name] ?? 3000))])
    .then((reached) => [name, reached], () => [name, ""]),
)).then(Object.fromEntries);
</script>"""

ENDLESS = "<!doctype html><script>for (;;);</script>"

# Browsertime runs this instead of a URL: it asks the page what it reached, and the browser how it is sandboxed.
SCRIPT = """
import { mkdirSync, writeFileSync } from "node:fs";
export default async function (context, commands) {
  const driver = context.selenium.driver;
  await commands.navigate(process.env.EYELEVEL_RETURN_URL);
  const page = await driver.executeAsyncScript("window.outcome.then(arguments[0])");
  await driver.get("chrome://sandbox");
  const sandbox = await driver.executeScript("return document.body.innerText");
  mkdirSync("video");
  writeFileSync("video/1.mp4", JSON.stringify({ page, sandbox }));
}
"""

# Stands in for the browser: tries everything, and reports what succeeded.
SPY = """#!/usr/bin/python3 -I
import json, os, pathlib, re, socket, subprocess, sys

GIVEN = json.loads('''GIVEN''')
results = next(pathlib.Path(word.partition("=")[2]).parent for word in sys.argv if word.startswith("--user-data-dir="))
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/sys", "/dev", "/var")


def succeeds(attempt, *arguments):
    try:
        attempt(*arguments)
        return True
    except OSError:
        return False


def connects(family, address):
    with socket.socket(family) as one:
        one.settimeout(20)
        return succeeds(one.connect, address)


def write(folder):
    os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))  # a file without a name: it leaves nothing, jail or no jail


folders, files = [], []
for folder, names, here in os.walk("/"):
    names[:] = [name for name in names if folder != "/" or "/" + name not in ("/proc", "/sys")]
    folders.append(folder)
    files += [folder + "/" + name for name in here]
own = {
    "status": pathlib.Path("/proc/self/status").read_text(),
    "user": [os.getuid(), os.getgid()],
    "read": [path for path in GIVEN["files"] if succeeds(lambda: open(path).read(1))],
    "others": [path for path in files if not path.startswith((*SYSTEM, str(results)))],
    "written": [folder for folder in folders if not folder.startswith(str(results)) and succeeds(write, folder)],
    "accounts": [line.split(":")[0] for line in open("/etc/passwd")],
    "variables": sorted(os.environ),
    "loopback": connects(socket.AF_INET, ("127.0.0.1", GIVEN["port"])),
    "beyond": connects(socket.AF_INET, ("198.51.100.1", 443)),
    "server": connects(socket.AF_INET, (GIVEN["server"], 443)),
    "sockets": [name for name in GIVEN["sockets"] if connects(socket.AF_UNIX, name)],
    "abstract": connects(socket.AF_UNIX, "\\\\0" + GIVEN["abstract"]),
    "processes": [
        pathlib.Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\\\\0", b" ").decode()
        for name in os.listdir("/proc") if name.isdigit()
    ],
    "environments": [
        name for name in os.listdir("/proc")
        if name.isdigit() and succeeds(lambda: GIVEN["secret"] in open(f"/proc/{name}/environ").read() or os.stat("/-"))
    ],
    "traced": succeeds(open, "/proc/1/mem", "rb") or succeeds(os.listdir, "/proc/1/root/"),
    "mounts": subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True).returncode == 0,
}
(results / "video").mkdir()
(results / "video" / "1.mp4").write_text(json.dumps(own))
"""


# Stands in for the browser: uses all the space that it gets, and continues.
FILLER = """#!/bin/sh
for word; do case $word in --user-data-dir=*) profile=${word#*=} ;; esac; done
fallocate --length 1800M "${profile%/*}/filler"
exec sleep 1000
"""


@dataclass(frozen=True)
class Host:
    """The host: a site, and next to it files and sockets waiting for connections."""

    site: Site
    listener: socket.socket
    folder: Path

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("hostile")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setblocking(False)
        for address in (f"\0{folder}", f"{folder}/socket"):
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.bind(address)
            waiting.listen()
        (folder / "socket").chmod(0o777)
        for parent in (folder, *folder.parents[:2]):  # only the jail hides them
            parent.chmod(0o755)
        (folder / "secret").write_text(SECRET)
        url = "https://hostile.example/"
        html = (("Content-Type", "text/html"),)
        page = PAGE.replace("PORT", str(listener.getsockname()[1]))
        bodies = {url: page, f"{url}again": "again", f"{url}endless": ENDLESS}
        exchanges = tuple(
            Exchange("GET", each, Response(200, "OK", html, body.encode()), "192.0.2.1")
            for each, body in bodies.items()
        )
        yield Host(write_site(Recording(url, exchanges, {"tool": "test"}), folder / "hostile"), listener, folder)


def visit(
    host: Host, results: Path, target: str | Path = "", binary: str | Path = "", limit_s: str = "", ready_s: str = ""
) -> str:
    """Visit with another target, another browser or other limits; return the output."""
    spec = VisitSpec(host.site.folder, PROTOCOL, (), 60.0, results, film=False)
    command = [sys.executable, "-c", VISIT, str(target), str(binary), limit_s, ready_s, as_argument(spec)]
    with (results.parent / "output").open("wb") as output:
        replay = ReplaySpec(host.site.folder, networks.load()["dsl"], PROTOCOL)
        run(replay, command, stdout=output.fileno(), stderr=output.fileno())
    return (results.parent / "output").read_text() + (results / LOG).read_text()


def left_by(host: Host, results: Path, target: str | Path = "", binary: str | Path = "") -> dict[str, Any]:
    """The result that another target or another browser writes in place of a visit's film."""
    printed = visit(host, results, target, binary)
    assert (results / FILM_LOG).exists(), printed
    outcome: dict[str, Any] = json.loads((results / FILM_LOG).read_text())
    return outcome


def test_a_page_reaches_its_own_servers_alone_from_within_chromiums_sandbox(host: Host, tmp_path: Path) -> None:
    script = host.folder / "script.mjs"
    script.write_text(SCRIPT)
    outcome = left_by(host, tmp_path / "results", target=script)
    assert outcome["page"] == dict.fromkeys(outcome["page"], "") | {"own server": "again"}
    with pytest.raises(BlockingIOError):
        host.listener.accept()
    assert "You are adequately sandboxed." in outcome["sandbox"], outcome["sandbox"]


def test_a_browser_in_foreign_hands_reads_writes_and_reaches_nothing(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_KEY", SECRET)
    files = [
        host.folder / "secret",
        host.site.folder / "site.json",
        ca_certificate().with_name("key.pem"),
        PROJECT / "pyproject.toml",
        *map(Path, ("/etc/shadow", "/run/eyelevel/certificates/key.pem", "/run/eyelevel/control", "/proc/1/environ")),
    ]
    given = {
        "files": [str(file) for file in files],
        "sockets": [f"{host.folder}/socket", "/run/eyelevel/control", "/run/eyelevel/servers/uwsgi.socket"],
        "abstract": str(host.folder),
        "port": host.port,
        "server": next(iter(host.site.servers)),
        "secret": SECRET,
    }
    spy = host.folder / "spy"
    spy.write_text(SPY.replace("GIVEN'''", json.dumps(given) + "'''").replace("\\\\", "\\"))
    spy.chmod(0o755)
    outcome = left_by(host, tmp_path / "results", binary=spy)

    status = dict(line.split(":\t", 1) for line in outcome["status"].splitlines() if ":\t" in line)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert tuple(outcome["user"]) == (jail_user() or (os.getuid(), os.getgid()))
    assert outcome["user"][0] != 0

    assert outcome["read"] == []
    program = tool("browsertime").resolve()
    packages = next(folder for folder in reversed(program.parents) if folder.name == "node_modules")
    ours = (packages, PROJECT / "browsers", tool("node"), tool("film-recorder"), spy, Path("/tmp/.X11-unix"))
    assert [path for path in outcome["others"] if not any(Path(path).is_relative_to(one) for one in ours)] == []
    assert outcome["written"] == ["/dev/shm"]
    assert set(outcome["accounts"]) <= {"root", "nobody", "eyelevel"}
    assert "CLOUD_KEY" not in outcome["variables"]

    assert outcome["server"]  # the page's own server, otherwise the rest would prove nothing
    assert not outcome["loopback"]
    assert not outcome["beyond"]
    assert outcome["sockets"] == []
    assert not outcome["abstract"]
    with pytest.raises(BlockingIOError):
        host.listener.accept()

    assert not [command for command in outcome["processes"] if "replay.inside" in command or "mm-net" in command]
    assert outcome["environments"] == []
    assert not outcome["traced"]
    assert not outcome["mounts"]


def test_a_browser_that_fills_its_file_system_is_ended_at_once_with_a_reason(host: Host, tmp_path: Path) -> None:
    filler = host.folder / "filler"
    filler.write_text(FILLER)
    filler.chmod(0o755)
    printed = visit(host, tmp_path / "results", binary=filler)
    fault = "the load was ended since it filled the 2048 MiB that it may write"
    assert f"eyelevel: {fault}" in printed
    assert printed.splitlines()[-1] == fault
    assert not (tmp_path / "results" / TIMINGS).exists()


def test_a_page_that_never_ends_is_ended_with_a_reason(host: Host, tmp_path: Path) -> None:
    """Browsertime ends it at its limit, here one minute; if that fails, we end it some time later, here 3 s."""
    printed = visit(host, tmp_path / "results", target="https://hostile.example/endless", limit_s="3")
    fault = "the load was ended since it took longer than 3 s"
    assert f"eyelevel: {fault}" in printed
    assert printed.splitlines()[-1] == fault
    assert (tmp_path / "results" / "netlog.json.gz").exists()


def test_a_browser_that_does_not_get_ready_is_ended_with_another_reason(host: Host, tmp_path: Path) -> None:
    printed = visit(host, tmp_path / "results", ready_s="0.1")
    assert printed.splitlines()[-1] == "the load was ended since its browser was not ready in time"
