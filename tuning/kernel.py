"""Applies a protocol's settings to the current network namespace, and reads them back.

A value is not trusted because it was written: every value is read again, and a wrong one stops the run. Initial window
and congestion control are set as attributes of routes, since a namespace may not choose every congestion control by
sysctl (`tcp_allowed_congestion_control` belongs to the whole machine).
"""

import json
import socket
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.places import PROJECT, tool
from base.processes import run_program
from tuning.protocols import Protocol

# How the browser's side sends, whatever the protocol: as stock Linux.
CLIENT_CONGESTION_CONTROL = "cubic"

# The algorithms that are built in or whose modules are loaded; only root can load a module by using its name.
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

# The names in iproute2's JSON that differ from those on its command line.
JSON_NAMES = {"congctl": "congestion"}

# The attributes that distinguish routes: name in iproute2's JSON → name on its command line.
ROUTE_KEYWORDS = {"gateway": "via", "protocol": "proto", "scope": "scope", "prefsrc": "src"}


def apply_sysctls(values: Mapping[str, str]) -> dict[str, str]:
    """Set kernel parameters of this namespace; returns them as read back. Raises EyelevelError."""
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


def tune_server_routes(device: str, protocol: Protocol) -> list[dict[str, Any]]:
    """Set up how servers send over `device` for `protocol`; returns the routes as read back.

    Raises EyelevelError.
    """
    control = protocol.congestion_control
    try:
        return _tune_routes(device, {"initcwnd": protocol.initial_window_packets, "congctl": control})
    except EyelevelError as error:
        # Check this only after a failure: for root, the kernel loads the module.
        if has_congestion_control(control):
            raise
        raise _lacks(protocol) from error


def has_congestion_control(name: str) -> bool:
    """Whether the kernel has the congestion control now: built in, or as a loaded module."""
    return name in CONGESTION_CONTROLS.read_text().split()


def require_congestion_controls(protocols: Iterable[Protocol]) -> None:
    """Raise EyelevelError when the kernel lacks the congestion control of one of `protocols`. For root, it loads the
    modules of those that it has not loaded."""
    for protocol in protocols:
        control = protocol.congestion_control
        if not protocol.in_kernel or has_congestion_control(control):
            continue
        with suppress(OSError), socket.socket() as one:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        if not has_congestion_control(control):
            raise _lacks(protocol)


def _lacks(protocol: Protocol) -> EyelevelError:
    control, known = protocol.congestion_control, ", ".join(CONGESTION_CONTROLS.read_text().split())
    return EyelevelError(
        f"{protocol.name} needs the congestion control {control}, which this kernel does not have or has not loaded; "
        f"it has {known}; {loading_of(control)}"
    )


def loading_of(control: str) -> str:
    """How an administrator loads the module of a congestion control."""
    now_and_at_boot = f"{PROJECT}/setup/grant bbr" if control == "bbr" else f"modprobe tcp_{control}"
    return f"load its module with: sudo {now_and_at_boot}"


def set_discipline(device: str, *, paced: bool) -> str:
    """Set the queueing discipline of `device`: fq, which paces TCP, if it is to be `paced` and the kernel has fq.

    Otherwise pfifo, which does not pace, whatever this machine's default is; then pacing relies on the listening
    sockets, which request TCP's own pacing (`servers.nginx`). Returns the discipline. Raises EyelevelError.
    """
    for kind in ("fq", "pfifo") if paced else ("pfifo",):
        command: list[str | Path] = [tool("tc"), "qdisc", "replace", "dev", device, "root", kind]
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        if not completed.returncode:
            break
    else:
        raise EyelevelError(f"{device} cannot have another queue: {completed.stderr.strip()}")
    kinds = [discipline["kind"] for discipline in _listing(tool("tc"), "-json", "qdisc", "show", "dev", device)]
    if kinds != [kind]:
        raise EyelevelError(f"{device} should queue by {kind}, but does by {', '.join(kinds) or 'nothing'}")
    return kind


def limit_buffers(device: str, protocol: Protocol) -> int | None:
    """Make `notsent_lowat_bytes` of `protocol`, if set, effective for what servers send over `device`.

    The kernel checks that limit only when it begins a new buffer of a connection, and one buffer holds as many bytes as
    the device takes at once (generic segmentation offload), usually 64 KiB. So this lowers that number. Returns it as
    read back, or None if the device does not change. Raises EyelevelError.
    """
    wanted_bytes = protocol.notsent_lowat_bytes
    if wanted_bytes is None or wanted_bytes >= _largest_buffer_bytes(device):
        return None
    command: list[str | Path] = [tool("ip"), "link", "set", "dev", device, "gso_max_size", str(wanted_bytes)]
    run_program(command, f"cannot limit what {device} takes at once to {wanted_bytes} bytes")
    if (actual_bytes := _largest_buffer_bytes(device)) != wanted_bytes:
        raise EyelevelError(f"{device} should take {wanted_bytes} bytes at once, but takes {actual_bytes}")
    return wanted_bytes


def _largest_buffer_bytes(device: str) -> int:
    return int(_listing(tool("ip"), "-json", "-details", "link", "show", "dev", device)[0]["gso_max_size"])


def tune_client_routes(device: str, protocol: Protocol) -> list[dict[str, Any]]:
    """Set up how the browser's side sends over `device`, and the largest segments that it announces; returns the
    routes."""
    segments = {"advmss": protocol.mss_bytes} if protocol.mss_bytes else {}
    return _tune_routes(device, {"congctl": CLIENT_CONGESTION_CONTROL, **segments})


def tune_hop_routes(device: str, congestion_control: str, initial_window_packets: int) -> list[dict[str, Any]]:
    """Set the congestion control and the initial window with which a hop sends over `device`; returns the routes."""
    return _tune_routes(device, {"initcwnd": initial_window_packets, "congctl": congestion_control})


def read_sysctls(names: Iterable[str]) -> dict[str, str]:
    """The current values of kernel parameters of this namespace."""
    return {name: " ".join((Path("/proc/sys") / name.replace(".", "/")).read_text().split()) for name in names}


def _tune_routes(device: str, attributes: Mapping[str, int | str]) -> list[dict[str, Any]]:
    listing = (tool("ip"), "-json", "-details", "route", "show", "dev", device)
    for route in _listing(*listing):
        command: list[str | Path] = [tool("ip"), "route", "change", route["dst"], "dev", device]
        for attribute, keyword in ROUTE_KEYWORDS.items():
            if attribute in route:
                command += [keyword, route[attribute]]
        for attribute, value in attributes.items():
            command += [attribute, str(value)]
        run_program(command, f"cannot set {dict(attributes)} of the route to {route['dst']}")
    routes = _listing(*listing)
    if not routes:
        raise EyelevelError(f"{device} has no route, so {dict(attributes)} cannot be set")
    for route in routes:
        metrics = route.get("metrics", [{}])[0]
        if any(metrics.get(JSON_NAMES.get(attribute, attribute)) != value for attribute, value in attributes.items()):
            raise EyelevelError(f"the route to {route['dst']} should have {dict(attributes)}, but holds {metrics}")
    return routes


def _listing(*command: str | Path) -> list[dict[str, Any]]:
    """The list that `command` of iproute2 prints as JSON."""
    entries: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return entries
