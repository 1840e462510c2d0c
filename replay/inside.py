"""Process 1 of a replay: sets up its world, runs the client in it, and reports the outcome.

Only `replay.sandbox` starts it, in fresh namespaces.
"""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.jail import file_in, hand_over
from base.namespaces import MONITORED_DEVICE
from base.portable import as_argument, from_argument
from base.processes import first_readable, leave, pidfd, pinned, running, stopped_at_the_end
from base.qlog import QLOG_ENDING
from record.connections import http1_servers
from record.site import Site
from replay import names, world
from replay.content import make_content
from replay.cross_traffic import accompanied
from replay.hop import hopped, serving_protocol
from replay.hops.registry import proxy_of
from replay.shells.contract import far_timekeeping
from replay.shells.registry import shells_named
from replay.spec import CONTROL, PRIVATE, SERVERS, TIMEKEEPING, ReplaySpec
from servers.certificates import certify, chain_bytes, machine_ca
from servers.contract import ServerCertificate, Serving
from servers.recorded_chains import recorded_chains
from servers.registry import server_of
from tuning import kernel
from tuning.protocols import HTTPS_RECORD

# In some containers the limit is a billion, and uWSGI would size its tables by it.
MOST_DESCRIPTORS = 1 << 16
REQUEST_LOG = "requests.tsv"
QLOG = "qlog"
# The folder for the files of the servers of an alternative protocol.
ALTERNATIVE = "alternative"


class LetGo(Exception):
    """The caller let go of the leash."""


def main(leash: int, report: int, spec: ReplaySpec, command: Sequence[str]) -> None:
    """Replay `spec` for `command`, and write the outcome to `report` as JSON."""
    os.set_inheritable(leash, False)
    os.set_inheritable(report, False)
    # Ctrl-C is for the command. If it is meant for all of us, the caller lets go of the leash. (A handler that does
    # nothing, since SIG_IGN would be inherited.)
    signal.signal(signal.SIGINT, lambda *_: None)
    # If we are root, servers run as another user, who must be able to read their files.
    umask = os.umask(0o022)
    evidence: dict[str, Any] = {}
    status, error = 1, None
    try:
        status = replay(leash, spec, command, evidence, umask)
    except EyelevelError as failure:
        error = str(failure)
    except LetGo:
        error = "the replay was stopped"
    with os.fdopen(report, "w") as file:
        json.dump({"status": status, "error": error, "evidence": evidence}, file)


def replay(leash: int, spec: ReplaySpec, command: Sequence[str], evidence: dict[str, Any], umask: int) -> int:
    """The whole replay; returns the command's exit status. The command gets `umask`."""
    started = time.monotonic()
    if spec.server_cores:
        os.sched_setaffinity(0, spec.server_cores)
    site = Site.load(spec.site)
    world.make(site)
    proxied = proxy_of(spec.network) is not None
    names.write_hosts(site, https_records=spec.protocol.discovery == HTTPS_RECORD, proxied=proxied)
    protocol = serving_protocol(spec)
    shells = shells_named(spec.shells)
    evidence["seed"] = spec.seed if shells.seeded else None
    evidence["server_sysctls"] = kernel.apply_sysctls(protocol.server_kernel)
    # Files that the servers write become the caller's only after the servers have ended, since these read data from
    # strangers.
    logs = SERVERS
    (logs / QLOG).mkdir()
    (PRIVATE / "shells").mkdir()
    nested = shells.nested(spec.network, spec.seed, TIMEKEEPING, PRIVATE / "shells", spec.extra_rtts_ms)
    evidence["extra_rtts_ms"] = dict(spec.extra_rtts_ms)
    evidence["think_time"] = spec.think_time
    # QUIC carries only HTTP/3, and an edge in a hop uses HTTP/2 with all servers.
    speaks_http1 = spec.recorded_alpn and protocol.in_kernel and protocol == spec.protocol
    http1 = http1_servers(site.connections) if speaks_http1 else frozenset()
    evidence["http1_servers"] = sorted(http1)
    evidence["shells"] = nested.record
    client = [*pinned(spec.emulator_cores), *nested.command]
    client += [sys.executable, "-m", "replay.client", as_argument(spec), *command]
    # The client's side starts at the same time as the servers; the client continues when they are ready.
    with (
        _kept_logs(spec, logs, evidence),
        _control_socket() as control,
        stopped_at_the_end(subprocess.Popen(client, umask=umask)) as stack,
    ):
        serving = Serving(
            site=site,
            content=_content(site, evidence, repeatable=spec.repeatable),
            protocol=protocol,
            folder=logs,
            certify=cache(partial(_certificates, site, evidence, recorded=spec.recorded_certificates)),
            request_log=logs / REQUEST_LOG if spec.request_log or protocol != spec.protocol else None,
            qlog=logs / QLOG if spec.qlog else None,
            think_time=spec.think_time,
            http1=http1,
        )
        with (
            _served(serving),
            _served_alternative(serving),
            _linked(control, stack, leash) as connection,
            _monitoring(spec.monitor),
        ):
            if protocol.in_kernel:
                device = world.outward_device()
                evidence["server_routes"] = kernel.tune_server_routes(device, protocol)
                evidence["queueing_discipline"] = kernel.set_discipline(device, paced=protocol.pacing)
                evidence["largest_buffer_bytes"] = kernel.limit_buffers(device, protocol)
            evidence["setup_s"] = round(time.monotonic() - started, 3)
            with hopped(spec, connection, serving, evidence), accompanied(spec, connection, evidence):
                evidence["client"] = _exchange_readiness(connection)
                status = _await_exit(stack, leash)
    # The emulated network writes this file at its end; if it was killed, the file is missing.
    if not TIMEKEEPING.exists() or not (timekeeping := TIMEKEEPING.read_text().strip()):
        raise EyelevelError(f"the emulated network failed while the client ran (status {status})")
    if spec.network.hop and (far := far_timekeeping(TIMEKEEPING).read_text().strip()) != timekeeping:
        raise EyelevelError(f"the near half kept time with {timekeeping}, the far half with {far or 'nothing'}")
    evidence["timekeeping"] = timekeeping
    evidence["unknown_names"] = names.unknown_names(site)
    if fault := world.full_file_system(lacked_buffers=server_of(protocol).lacked_buffers(logs)):
        evidence["full"] = fault
    return status


@contextmanager
def _served(serving: Serving) -> Iterator[None]:
    """Serve while the context lasts. A site may need more descriptors than the usual limit permits, so the limit is
    raised while its servers start."""
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(usual, min(most, MOST_DESCRIPTORS)), most))
    with server_of(serving.protocol).serve(serving):
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
        yield


@contextmanager
def _served_alternative(serving: Serving) -> Iterator[None]:
    """If the protocol has an alternative, serve by that, too."""
    if (other := serving.protocol.alternative_service) is None:
        yield
        return
    folder = serving.folder / ALTERNATIVE
    folder.mkdir()
    log = folder / REQUEST_LOG if serving.request_log else None
    with _served(replace(serving, protocol=other, folder=folder, request_log=log, qlog=None)):
        yield


@contextmanager
def _kept_logs(spec: ReplaySpec, logs: Path, evidence: dict[str, Any]) -> Iterator[None]:
    """At the end of the context, copy the servers' logs of the client's requests to where the caller wants them."""
    try:
        yield
    finally:
        for name in (REQUEST_LOG, f"{ALTERNATIVE}/{REQUEST_LOG}"):
            if spec.request_log and (requests := file_in(logs, name)):
                with requests.open("rb") as source, spec.request_log.open("ab") as target:
                    source.seek(evidence.get("hop", {}).get("log_bytes_before", 0))
                    shutil.copyfileobj(source, target)
        if spec.qlog:
            for entry in sorted((logs / QLOG).glob(f"*{QLOG_ENDING}")):
                if log := file_in(logs, f"{QLOG}/{entry.name}"):
                    shutil.copyfile(log, spec.qlog / entry.name)


def _content(site: Site, evidence: dict[str, Any], *, repeatable: bool) -> Path:
    """The folder to serve in place of the site's own; `evidence` gets the scripts that were added to documents."""
    content = PRIVATE / "content"
    content.mkdir()
    evidence["scripts"] = make_content(site, content, repeatable=repeatable)
    return content


def _certificates(site: Site, evidence: dict[str, Any], *, recorded: bool) -> dict[str, ServerCertificate]:
    """A certificate for each server, readable by the servers' user. If `recorded`, these are chains like the recorded
    ones, and `evidence` gets their lengths. Raises EyelevelError."""
    forms = recorded_chains(site) if recorded else None
    certificates = certify(machine_ca(), _certified_names(site), PRIVATE / "certificates", forms)
    hand_over(PRIVATE / "certificates")
    if forms:
        evidence["certificate_bytes"] = {
            address: {"recorded": sum(form.certificates), "replayed": chain_bytes(certificates[address])}
            for address, form in forms.items()
        }
    return certificates


def _certified_names(site: Site) -> dict[str, tuple[str, ...]]:
    return {
        address: tuple(authority.partition(":")[0] for authority in authorities)
        for address, authorities in site.servers.items()
    }


@contextmanager
def _control_socket() -> Iterator[socket.socket]:
    """The socket at which the client reports that the emulated network is up, and waits for the settings that need
    it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.bind(str(CONTROL))
        control.listen(1)
        yield control


@contextmanager
def _linked(control: socket.socket, stack: "subprocess.Popen[bytes]", leash: int) -> Iterator[socket.socket]:
    """The client's connection, once it is made. Raises EyelevelError when a shell fails instead."""
    with pidfd(stack) as ended:
        ready = first_readable(control.fileno(), ended, leash)
        if ready == leash:
            raise LetGo
        if ready == ended:
            raise EyelevelError(f"the emulated network could not be set up (status {stack.wait()})")
    connection, _ = control.accept()
    with connection:
        yield connection


@contextmanager
def _monitoring(command: Sequence[str]) -> Iterator[None]:
    """Run `command`, if given, next to the servers while the context lasts.

    Its environment names the device that leads to the client. It must print a line when it is ready, and end in an
    orderly way on SIGTERM; otherwise, this raises EyelevelError.
    """
    if not command:
        yield
        return
    environment = {**os.environ, MONITORED_DEVICE: world.outward_device()}
    log = PRIVATE / "monitor.log"
    with running("the monitor", command, log, environment=environment, stdout=subprocess.PIPE) as monitor:
        monitor.first_line()
        yield
    if monitor.process.returncode not in (0, -signal.SIGTERM):
        raise monitor.failure()


def _exchange_readiness(connection: socket.socket) -> dict[str, Any]:
    """Let the client continue; returns the settings that it made in its namespace."""
    text = ""
    with suppress(OSError), connection.makefile("r") as lines:  # it may have ended
        connection.sendall(b"go\n")
        text = lines.readline()
    if not text:
        raise EyelevelError("the client's side could not be set up")
    answer: dict[str, Any] = json.loads(text)
    return answer


def _await_exit(stack: "subprocess.Popen[bytes]", leash: int) -> int:
    with pidfd(stack) as ended:
        if first_readable(ended, leash) == leash:
            raise LetGo
    return stack.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), from_argument(sys.argv[3]), sys.argv[4:])
    leave(0)
