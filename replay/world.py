"""The replay's private world: file systems and addresses that exist only inside it."""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from base.display import KEYBOARD_MAPS
from base.errors import EyelevelError
from base.namespaces import bind, mount_memory
from base.places import cache_dir, tool
from base.processes import run_program
from record.site import Site
from replay.spec import PRIVATE
from servers.contract import BUFFERS
from tuning import kernel

# The size of a file system in memory. Beyond it, the disk is full for its writers, and for nobody else. In addition
# to the file systems below, /run has the files that servers send, which a page cannot enlarge.
MOST_BYTES = 2 << 30
# Separate file systems for what the page makes others write: the browser's files, along with the film; the servers'
# logs; the names that it looks up. So it cannot use up the space that the servers need.
BYTES_OF = {
    "tmp": MOST_BYTES,
    "servers": 1 << 30,
    f"servers/{BUFFERS}": 1 << 30,
    "names": 64 << 20,
    "keyboard": 1 << 20,
}
# A file system with less free space than this share may have been full for a moment, and refused a write.
SPARE_SHARE = 1 / 64

# The beginning of the names of devices that lead to the hosts of background flows (`replay.cross_traffic_flows`).
CROSS_TRAFFIC_DEVICE = "cross"

# The system's files for name resolution, and their replacements inside the namespaces.
SYSTEM_FILES = {
    "/etc/resolv.conf": "nameserver 127.0.0.1\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}


def make(site: Site) -> None:
    """Set up this process's namespaces for `site`. Raises EyelevelError."""
    mount_memory(Path("/run"), f"mode=755,size={MOST_BYTES}")
    for folder in ("home", "runtime", "certificates", "system"):
        (PRIVATE / folder).mkdir(parents=True)
    for folder, size_bytes in BYTES_OF.items():
        (PRIVATE / folder).mkdir()
        mount_memory(PRIVATE / folder, f"mode=755,size={size_bytes}")
    (PRIVATE / "runtime").chmod(0o700)
    _replace_system_files()
    if KEYBOARD_MAPS.exists():  # if there is an X server
        bind(PRIVATE / "keyboard", KEYBOARD_MAPS)
    commands = ["link set lo up", *(f"address add {address}/32 dev lo" for address in site.servers)]
    run_program([tool("ip"), "-batch", "-"], "the replay's addresses could not be set", "\n".join(commands))
    open_ports()


def open_ports() -> None:
    """Let servers in the present network namespace use any port without a capability. Raises EyelevelError."""
    kernel.apply_sysctls({"net.ipv4.ip_unprivileged_port_start": "0"})


def client_environment(ca: Path) -> Mapping[str, str]:
    """The environment of programs in the client's namespace: files that they write by default vanish with the
    replay."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{cache_dir() / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(PRIVATE / "home"),
        "TMPDIR": str(PRIVATE / "tmp"),
        "XDG_RUNTIME_DIR": str(PRIVATE / "runtime"),
        "XDG_CACHE_HOME": str(PRIVATE / "home" / ".cache"),
        "XDG_CONFIG_HOME": str(PRIVATE / "home" / ".config"),
        "SSL_CERT_FILE": str(ca),
        "CURL_CA_BUNDLE": str(ca),
    }


def full_file_system(*, lacked_buffers: bool) -> str | None:
    """The part of the replay that had no space for its data, in words; None if all had.

    `lacked_buffers`: whether the server reports this for the data that it keeps until it is read.
    """
    for folder, what in (("servers", "the servers write"), ("names", "the name server write")):
        status = os.statvfs(PRIVATE / folder)
        if status.f_bavail < SPARE_SHARE * status.f_blocks:
            return _too_much(folder, what)
    return _too_much(f"servers/{BUFFERS}", "the servers keep for it") if lacked_buffers else None


def _too_much(folder: str, what: str) -> str:
    return f"the page made {what} more than the {BYTES_OF[folder] >> 20} MiB that there are"


def outward_device() -> str:
    """The only device in this namespace except `lo` and those of background flows: its end of the emulated network."""
    names = [name for _, name in socket.if_nameindex()]
    devices = [name for name in names if name != "lo" and not name.startswith(CROSS_TRAFFIC_DEVICE)]
    if len(devices) != 1:
        raise EyelevelError(f"expected one device of the emulated network, found {devices or 'none'}")
    return devices[0]


def _replace_system_files() -> None:
    for path, content in SYSTEM_FILES.items():
        replacement = PRIVATE / "system" / Path(path).name
        replacement.write_text(content)
        target = Path(path).resolve()
        if str(target).startswith("/run/"):  # a link into the /run that we have just hidden
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
        if target.exists():
            bind(replacement, target)
