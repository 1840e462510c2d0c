"""The servers by name, and which of them serves a protocol."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

import servers
from base.errors import EyelevelError
from base.registry import registered
from servers.contract import Server
from tuning.protocols import Protocol


@cache
def all_servers() -> Mapping[str, Server]:
    """Name → server."""
    return registered(servers, "SERVER")


def server_of(protocol: Protocol) -> Server:
    """The server that serves `protocol`. Raises EyelevelError when no server has the name."""
    known = all_servers()
    if protocol.program:
        if protocol.server in known:
            raise EyelevelError(
                f"{protocol.name}: {protocol.server} is a server of the testbed; give the program another name by the "
                "key server"
            )
        # It loads all that serves, which most commands do not need.
        from servers.program import PROGRAM

        return PROGRAM
    if protocol.server not in known:
        raise EyelevelError(f"{protocol.name}: there is no server {protocol.server!r}; there are {', '.join(known)}")
    return known[protocol.server]


def programs_of(protocols: Iterable[Protocol]) -> dict[str, str]:
    """The programs of all servers of `protocols`: name or path → the option that prints the version. Raises
    EyelevelError."""
    programs: dict[str, str] = {}
    for protocol in protocols:
        for one in protocol.services:
            # One program may serve several protocols, of which only one says how it prints its version.
            for program, option in server_of(one).programs_for(one).items():
                programs[program] = programs.get(program) or option
    return programs


def require_served(protocols: Iterable[Protocol], places: Mapping[str, str] | None = None) -> list[Protocol]:
    """`protocols` with all connection options that their servers need.

    `places`: name of a protocol → where it is written. Raises EyelevelError when a server refuses a protocol.
    """
    complete = []
    for protocol in protocols:
        server = server_of(protocol)
        if fault := server.refusal(protocol):
            raise EyelevelError(f"{(places or {}).get(protocol.name, protocol.name)}: {fault}")
        if (other := protocol.alternative_service) is not None:
            if not server.offers_alternative:
                raise EyelevelError(f"{protocol.name}: {server.name} cannot announce an alternative")
            protocol = protocol.with_alternative(*require_served([other]))
        complete.append(replace(protocol, connection_options=server.connection_options(protocol)))
    return complete


def http1_refusal(protocol: Protocol) -> str | None:
    """Why single servers cannot speak only HTTP/1.1 while others use `protocol`, in one line. None if they can, or if
    `protocol` uses QUIC, which carries only HTTP/3."""
    if not protocol.in_kernel:
        return None
    if not server_of(protocol).speaks_http1:
        return f"{protocol.server} does not serve over HTTP/1.1 alone"
    if protocol.browser_knows_servers:
        return "the browser would be told that all servers speak HTTP/2; known_servers must be false"
    return None
