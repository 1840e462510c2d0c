"""What a campaign was measured with: the programs' versions, and the machine."""

import os
import platform
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

from base.errors import EyelevelError
from base.places import PROJECT, tool

# How each program tells its version.
COMMON = {
    "chromium": "--version",
    "chromedriver": "--version",
    "node": "--version",
    "ffmpeg": "-version",
    "dnsmasq": "--version",
    "mm-net": "--version",
}
BY_TRANSPORT = {
    "tcp": {"nginx": "-v", "uwsgi": "--version"},
    "quic": {"quic_server": "--version"},
}
CAPTURING = {"dumpcap": "--version", "tshark": "--version", "ping": "-V"}


def versions(transports: Collection[str], *, capturing: bool = False) -> dict[str, str]:
    """Name → version of everything that takes part in a run over `transports`, captured or not.

    Raises EyelevelError.
    """
    asked = COMMON | {name: flag for transport in transports for name, flag in BY_TRANSPORT[transport].items()}
    asked |= CAPTURING if capturing else {}
    found = {name: _version(name, flag) for name, flag in asked.items()}
    found["browsertime"] = _browsertime()
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    return dict(sorted(found.items()))


def machine() -> dict[str, str | int]:
    """The machine, and the commit of the testbed itself, as far as can be told."""
    return {
        "host": platform.node(),
        "cpu": _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$") or platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_kib": int(_first_match("/proc/meminfo", r"^MemTotal:\s*(\d+) kB") or 0),
        "system": _first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)') or platform.system(),
        "testbed": _output(["git", "-C", str(PROJECT), "describe", "--always", "--dirty"]) or "unknown",
    }


def _version(name: str, flag: str) -> str:
    path = tool(name)
    text = _output([str(path), flag])
    if not text:
        raise EyelevelError(f"{path} {flag} does not tell a version; run 'make setup' again")
    return text.splitlines()[0].strip()


def _browsertime() -> str:
    package = tool("browsertime").resolve().parents[1] / "package.json"
    return _first_match(str(package), r'^\s*"version":\s*"([^"]+)"') or "unknown"


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() or done.stderr.strip() if done.returncode == 0 else ""


def _first_match(path: str, pattern: str) -> str | None:
    try:
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None
