"""Serving a site over QUIC and HTTP/3: one of our `quic_server`s per server address."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from base.places import tool
from base.processes import running
from record.site import host_folder
from servers.contract import Serving


@contextmanager
def serve(serving: Serving) -> Iterator[None]:
    """Serve `serving.site` on UDP while the block runs (see `servers.contract`)."""
    with ExitStack() as stack:
        # All are started before any is waited for, since each takes a while to load its responses.
        daemons = []
        for address, port in serving.listening():
            certificate = serving.certificates[address]
            command: list[str | Path] = [tool("quic_server"), "--address", address, "--port", str(port)]
            command += ["--responses", _responses_of(serving, address)]
            command += ["--certificate", certificate.chain, "--key", certificate.key]
            if serving.request_log:
                command += ["--request-log", serving.request_log]
            if serving.qlog:
                command += ["--qlog", serving.qlog]
            if serving.think_time:
                command.append("--think-time")
            log = serving.folder / f"quic_server-{address}-{port}.log"
            name = f"quic_server on {address}:{port}"
            daemons.append(stack.enter_context(running(name, command, log, stdout=subprocess.PIPE)))
        for daemon in daemons:
            assert daemon.process.stdout
            if not daemon.process.stdout.readline().startswith(b"listening"):
                daemon.process.wait()
                raise daemon.failure()
        yield


def _responses_of(serving: Serving, address: str) -> Path:
    """A folder with (links to) the host folders of one server: what its quic_server loads."""
    folder = serving.folder / address
    if not folder.exists():
        folder.mkdir()
        for authority in serving.site.servers[address]:
            host = host_folder(authority)
            (folder / host).symlink_to(serving.content / host)
    return folder
