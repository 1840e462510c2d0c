"""Certificate chains with the length and the number of hosts of the recorded ones, signed by the usual CA.

Before the client's address is validated, a QUIC server may send at most three times the bytes that it received (RFC
9000, section 8.1). So a long chain costs QUIC a round trip, while it fits into TCP's initial window
(docs/networks.md).
"""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from base.errors import EyelevelError
from record.site import Site
from servers.certificate_authority import CertificateAuthority

# Clients ignore unknown extensions (RFC 5280, section 4.2). This number is reserved for examples (RFC 5612).
PADDING = x509.ObjectIdentifier("1.3.6.1.4.1.32473.1")
# Chromium refuses longer chains (BoringSSL's SSL_DEFAULT_MAX_CERT_LIST is 100 KiB, including framing).
MOST_BYTES = 90_000
# The subject of all certificates after the first.
FURTHER = "Eyelevel further certificate"


@dataclass(frozen=True)
class ChainForm:
    """The form of a chain: the size in bytes of each certificate (DER), the server's own first, and the names in the
    first."""

    certificates: tuple[int, ...]
    names: tuple[str, ...] = ()


def recorded_chains(site: Site) -> dict[str, ChainForm]:
    """Server address → the first chain that it sent. A server without a recorded chain gets the one of median length.

    Raises EyelevelError when none was recorded.
    """
    chains: dict[str, ChainForm] = {}
    for connection in site.connections:
        if connection.certificates:
            chains.setdefault(connection.server, ChainForm(connection.certificates, connection.names))
    for address, chain in chains.items():
        # The names are part of the certificates, or make them longer.
        chain_bytes = max(sum(chain.certificates), sum(map(len, chain.names)))
        if chain_bytes > MOST_BYTES:
            raise EyelevelError(
                f"{site.name}: the recorded chain of {address} has {chain_bytes} bytes of certificates and names, and "
                f"browsers take {MOST_BYTES} at most; leave out --certificates (CERTIFICATES)"
            )
    if not chains:
        raise EyelevelError(
            f"{site.name}: no certificates of its servers were recorded; record it again, or leave out --certificates "
            "(CERTIFICATES)"
        )
    usual_bytes = statistics.median_low(sum(chain.certificates) for chain in chains.values())
    usual = next(chain for chain in chains.values() if sum(chain.certificates) == usual_bytes)
    return {address: chains.get(address, ChainForm(usual.certificates)) for address in site.servers}


def issue_chain(
    ca: CertificateAuthority,
    key: ec.EllipticCurvePublicKey,
    name: str,
    lifetime: timedelta,
    addresses: Sequence[x509.GeneralName],
    form: ChainForm,
) -> list[x509.Certificate]:
    """A certificate of `key` for the server of these `addresses`, followed by as many others as in `form`.

    The whole chain is as long as that of `form`, to within a few bytes, unless the names alone are longer. The CA has
    signed the first certificate itself; the others only take up space.
    """
    given = {address.value for address in addresses}
    names = [*addresses, *(x509.DNSName(text) for text in form.names if text not in given)]
    first, *others = form.certificates
    chain = [_issued(ca, key, name, lifetime, names, first)]
    # The others compensate for the bytes by which the first is too long or too short.
    missing = first - _size(chain[0])
    for place, size in enumerate(others):
        share = missing // (len(others) - place)
        chain.append(_issued(ca, key, FURTHER, lifetime, (), size + share))
        missing += size - _size(chain[-1])
    return chain


def _issued(
    ca: CertificateAuthority,
    key: ec.EllipticCurvePublicKey,
    name: str,
    lifetime: timedelta,
    names: Sequence[x509.GeneralName],
    wanted_bytes: int,
) -> x509.Certificate:
    """A certificate of `wanted_bytes`, or a longer one if it cannot be that short."""
    usages = [ExtendedKeyUsageOID.SERVER_AUTH]
    certificate = ca.issue(name, key, usages, lifetime, names)
    padding_bytes = wanted_bytes - _size(certificate)
    # The extension has length fields, whose own size depends on the padding's length. So the first certificate can
    # miss the wanted size; the second corrects this.
    for _ in range(2):
        if padding_bytes <= 0:
            break
        padding = x509.UnrecognizedExtension(PADDING, os.urandom(padding_bytes))
        certificate = ca.issue(name, key, usages, lifetime, names, [padding])
        padding_bytes -= _size(certificate) - wanted_bytes
    return certificate


def _size(certificate: x509.Certificate) -> int:
    return len(certificate.public_bytes(Encoding.DER))
