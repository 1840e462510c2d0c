"""`eyelevel replay`: run a command or a shell as the client of a replayed site."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from replay.spec import ReplaySpec

# curl speaks these versions as the browser does; its QUIC differs from Chromium's.
CURL_VERSIONS = ("h2",)


@click.command(context_settings={"ignore_unknown_options": True}, params=parameters_of("replay"))
def main(
    site_name: str,
    net: str,
    proto: str,
    request_log: Path | None,
    repeatable: bool,
    think_time: str,
    certificates: str,
    alpn: str,
    server_rtts: str,
    shells: str,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND, or a shell, with a recorded site at the other end of an emulated network.

    The exit status is that of COMMAND.

    Example: eyelevel replay --site demo-news --net lte --proto tcp -- curl -sI https://www.demo-news.example/
    """
    from measure.run.aliases import choose_protocol
    from measure.run.server_rtts import parse_server_rtts
    from record.collection import choose_site
    from record.edit import require_think_time
    from replay.sandbox import run
    from replay.spec import ReplaySpec
    from tuning import networks, protocols
    from tuning.defaults import RECORDED
    from tuning.settings import choose_one

    site = choose_site(site_name)
    require_think_time(site, think_time == RECORDED)
    spec = ReplaySpec(
        site=site.folder,
        network=choose_one("network", net, networks.load()),
        protocol=choose_protocol(proto, protocols.load()),
        request_log=request_log.absolute() if request_log else None,
        repeatable=repeatable,
        think_time=think_time == RECORDED,
        recorded_certificates=certificates == RECORDED,
        recorded_alpn=alpn == RECORDED,
        extra_rtts_ms=parse_server_rtts(server_rtts).extra_ms(site),
        shells=shells,
    )
    if not command:
        print(_what_to_try(spec), flush=True)
        command = (os.environ.get("SHELL", "/bin/sh"),)
    sys.exit(run(spec, command).status)


def _what_to_try(spec: ReplaySpec) -> str:
    """Commands to try in the client's namespace, for a user whose shell runs there."""
    from record.site import Site

    url = Site.load(spec.site).url
    # The results go into the replay's own temporary folder, where nobody else can place a link.
    load = f'eyelevel load --site {spec.site.name} --proto {spec.protocol.name} --into "$TMPDIR/visit"'
    tries = [f"ping -c 3 {shlex.quote(urlsplit(url).hostname or '')}", load, "exit"]
    if spec.protocol.http_version in CURL_VERSIONS:
        tries.insert(1, f"curl -so /dev/null -w '%{{http_version}} %{{time_total}}\\n' {shlex.quote(url)}")
    lines = [f"{spec.site.name} over {spec.protocol.name} on {spec.network.name} ({spec.network}). Try:", *tries]
    return "\n    ".join(lines)
