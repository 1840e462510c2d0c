"""Applying a protocol's settings to the network namespace we are in, and reading back what holds.

Nothing is taken as set because it was written: every value is read again, and one that did not take
stops the run.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from eyelevel.errors import EyelevelError
from eyelevel.places import tool
from tuning.protocols import Protocol

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"

# What tells one route from another: iproute2's name for it in JSON, and on the command line.
ROUTE_KEYWORDS = {"gateway": "via", "protocol": "proto", "scope": "scope", "prefsrc": "src"}


def apply_server_sysctls(protocol: Protocol) -> dict[str, str]:
    """Set the servers' namespace up for `protocol`; returns every value as read back. Raises EyelevelError."""
    return _apply({CONGESTION_CONTROL: protocol.congestion_control, **protocol.server_sysctls})


def apply_client_sysctls(protocol: Protocol) -> dict[str, str]:
    """The same for the browser's namespace, whose sending side is always stock Cubic."""
    return _apply({CONGESTION_CONTROL: "cubic", **protocol.client_sysctls})


def set_initial_window(device: str, packets: int) -> list[dict[str, object]]:
    """Give every route over `device` an initial congestion window; returns the routes as read back.

    Raises EyelevelError.
    """
    for route in _routes(device):
        command: list[str | Path] = [tool("ip"), "route", "change", str(route["dst"]), "dev", device]
        for attribute, keyword in ROUTE_KEYWORDS.items():
            if attribute in route:
                command += [keyword, str(route[attribute])]
        done = subprocess.run([*command, "initcwnd", str(packets)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise EyelevelError(f"cannot set the initial window of the route to {route['dst']}: {done.stderr.strip()}")
    routes = _routes(device)
    for route in routes:
        if _initial_window(route) != packets:
            raise EyelevelError(f"the route to {route['dst']} did not take an initial window of {packets} packets")
    if not routes:
        raise EyelevelError(f"{device} has no route, so its initial window cannot be set")
    return routes


def _apply(values: Mapping[str, str]) -> dict[str, str]:
    applied = {}
    for name, value in values.items():
        path = Path("/proc/sys") / name.replace(".", "/")
        try:
            path.write_text(value)
            applied[name] = " ".join(path.read_text().split())
        except OSError as error:
            raise EyelevelError(f"this kernel does not let {name} be {value!r}: {error.strerror}") from None
        if applied[name] != " ".join(value.split()):
            raise EyelevelError(f"{name} was set to {value!r}, but the kernel holds {applied[name]!r}")
    return applied


def _routes(device: str) -> list[dict[str, object]]:
    shown = subprocess.run(
        [tool("ip"), "-json", "-details", "route", "show", "dev", device], capture_output=True, text=True, check=True
    )
    routes: list[dict[str, object]] = json.loads(shown.stdout)
    return routes


def _initial_window(route: dict[str, object]) -> object:
    metrics = route.get("metrics")
    return metrics[0].get("initcwnd") if isinstance(metrics, list) and metrics else None
