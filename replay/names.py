"""Name resolution in a replay: the recorded hosts, and no other names."""

import ctypes
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from base.errors import EyelevelError
from base.jail import Jail, file_in, jailed
from base.places import tool
from base.processes import Daemon, first_readable, pidfd
from record.site import Site
from replay.spec import PRIVATE, PROXY_ADDRESS, PROXY_HOST

FOLDER = PRIVATE / "names"
HOSTS = FOLDER / "hosts"
RECORDS = FOLDER / "records"
QUERY_LOG = FOLDER / "log"

# The HTTPS record of a host that speaks HTTP/3 and HTTP/2 at its own name and port: type, then in hex the priority 1,
# an empty target name, and the parameter 1 (alpn) with its length (RFC 9460, section 2.2). dnsmasq accepts it by its
# type number.
HTTPS_RR = "65,0001" + "00" + "0001" + "0006" + b"\x02h3\x02h2".hex()

# Part of dnsmasq's log line when it has opened its sockets.
STARTED = ": started, "
START_TIMEOUT_S = 20.0
# inotify(7), which Python does not offer.
IN_MODIFY = 0x2


def write_hosts(site: Site, *, https_records: bool, proxied: bool) -> None:
    """Write the recorded hosts for the name server. With `https_records`, hosts with port 443 get HTTPS_RR. (Records
    for other ports have other names: RFC 9460, section 9.1.) If `proxied`, the name of the hop is added."""
    lines = [f"{address} {host}" for host, addresses in site.addresses.items() for address in addresses]
    lines += [f"{PROXY_ADDRESS} {PROXY_HOST}"] if proxied else []
    HOSTS.write_text("\n".join(lines) + "\n")
    authorities = {one for authorities in site.servers.values() for one in authorities} if https_records else set()
    RECORDS.write_text("".join(f"dns-rr={host},{HTTPS_RR}\n" for host in sorted(authorities & set(site.addresses))))


def start_name_server(port: int) -> Callable[[], None]:
    """Start dnsmasq next to the client, outside the emulated network, at this port; returns a function that waits until
    it answers.

    It knows only the recorded hosts; no other name exists. It ends with this process. Both functions raise
    EyelevelError.
    """
    dnsmasq: list[str | Path] = [tool("dnsmasq"), "--keep-in-foreground", f"--conf-file={RECORDS}", "--no-resolv"]
    dnsmasq += ["--no-hosts", f"--addn-hosts={HOSTS}", "--listen-address=127.0.0.1", "--bind-interfaces"]
    dnsmasq += [f"--port={port}", "--address=/#/", "--no-round-robin", f"--pid-file={FOLDER / 'pid'}"]
    dnsmasq += ["--log-queries", f"--log-facility={QUERY_LOG}"]
    QUERY_LOG.touch()
    command = jailed(Jail(writable=(FOLDER,)), dnsmasq)
    libc = ctypes.CDLL(None, use_errno=True)
    changes = os.fdopen(libc.inotify_init1(os.O_CLOEXEC), "rb", buffering=0)
    if libc.inotify_add_watch(changes.fileno(), os.fsencode(QUERY_LOG), IN_MODIFY) < 0:
        raise EyelevelError(f"changes of {QUERY_LOG} cannot be awaited: {os.strerror(ctypes.get_errno())}")
    with (FOLDER / "errors").open("wb") as errors:
        # In a session of its own, dnsmasq does not get a terminal's Ctrl-C.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True)

    def await_answers() -> None:
        with changes, pidfd(process) as ended:
            while STARTED not in QUERY_LOG.read_text():
                if first_readable(ended, changes.fileno(), timeout_s=START_TIMEOUT_S) != changes.fileno():
                    raise Daemon("dnsmasq", process, FOLDER / "errors").failure()
                changes.read(1 << 12)

    return await_answers


def unknown_names(site: Site) -> list[str]:
    """The names that were looked up but are not those of recorded hosts."""
    log = file.read_text(errors="replace") if (file := file_in(FOLDER, QUERY_LOG.name)) else ""
    names = set(re.findall(r" query\[\S+ (\S+)", log))
    return sorted(names - set(site.addresses) - {PROXY_HOST})
