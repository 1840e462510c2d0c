"""How the nodes of a cluster reach each other: by TLS with the cluster's keys, or unencrypted on the user's request."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from base.errors import Misuse

if TYPE_CHECKING:
    from distributed.security import Security

    from measure.cluster.keys import Keys, Role

PORT = 8786  # Dask's default
ENCRYPTED, UNENCRYPTED = "tls", "tcp"


def scheduler_address(text: str, *, insecure: bool = False) -> str:
    """The scheduler's address in `text`; without a scheme, it is tls://HOST:PORT.

    Raises EyelevelError for an invalid address, and for an unencrypted one (tcp://) unless `insecure`. This includes
    loopback, which all users of a machine can reach.
    """
    fault = Misuse(f"{text!r} is not a scheduler's address, which is like tls://10.0.0.1:{PORT}")
    try:
        parts = urlsplit(text if "://" in text else f"{ENCRYPTED}://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise fault from None
    more = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in (ENCRYPTED, UNENCRYPTED) or not host or more:
        raise fault
    if parts.scheme == UNENCRYPTED and not insecure:
        raise Misuse(
            f"{text} is not encrypted: anyone who reaches it could run programs as you, here and on all workers; use "
            f"tls://{bracketed(host)}:{port or PORT} after 'make cluster-keys', or give --insecure to 'eyelevel'"
        )
    return f"{parts.scheme}://{bracketed(host)}:{PORT if port is None else port}"


def security_of(role: Role, address: str) -> Security | None:
    """Dask's settings for connections of `role` in the cluster whose scheduler has this address; None if unencrypted.

    Raises EyelevelError when its keys are missing.
    """
    from measure.cluster.keys import keys_of

    return security(keys_of(role)) if urlsplit(address).scheme == ENCRYPTED else None


def security(keys: Keys) -> Security:
    """Dask's settings for connections with `keys`: both ends must show a certificate of this cluster, in every role."""
    from distributed.security import Security

    files = {
        f"tls_{what}_{part}": str(path)
        for what in ("client", "scheduler", "worker")
        for part, path in (("cert", keys.certificate), ("key", keys.key))
    }
    return Security(
        require_encryption=True,
        tls_ca_file=str(keys.ca),
        tls_min_version=ssl.TLSVersion.TLSv1_3,
        **files,
    )


def bracketed(host: str) -> str:
    """`host` as written before a port: an IPv6 address, which contains colons, is put in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
