"""This machine's certificate authority (CA), and the certificates of replayed servers.

The CA is short-lived, and only the testbed's own browser profiles trust it. All server programs get the same kind of
chain (an ECDSA P-256 leaf signed by the CA), so that handshakes have the same bytes on each.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from base.errors import EyelevelError, reports_errors
from base.files import lock, replacing_folder, write_private
from base.ownership import give_to_caller
from base.places import ca_certificate, cache_dir
from servers.certificate_authority import CertificateAuthority, certificate_pem, new_key, private_pem
from servers.contract import ServerCertificate
from servers.recorded_chains import ChainForm, issue_chain

LIFETIME = timedelta(days=90)
RENEWED_BEFORE_END = timedelta(days=14)
NAME = "Eyelevel replay testbed"
# The name of the CA's key file, next to its certificate.
KEY = "key.pem"
LOCK = "ca.lock"
OWN_CACHE = "if it is another user's, set EYELEVEL_CACHE to a folder of yours, or have its owner run 'make setup'"


def machine_ca() -> CertificateAuthority:
    """This machine's CA; it is created on first use, and renewed before it expires. Raises EyelevelError."""
    # Most callers only read, and the cache may not be writable for them.
    if present := _present_ca():
        return present
    folder = ca_certificate().parent
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(LOCK).open("w") as file:
            lock(file.fileno(), wait=True)
            # Another process may have created it meanwhile.
            ca = _present_ca() or _new_ca(folder)
        give_to_caller(folder, cache_dir())
        give_to_caller(folder.with_name(LOCK))
        return ca
    except OSError as error:
        raise EyelevelError(f"{folder} cannot be written ({error.strerror}); {OWN_CACHE}") from None


def machine_ca_certificate() -> Path:
    """The PEM file of the CA's certificate, which is created if it is missing. Raises EyelevelError."""
    machine_ca()
    return ca_certificate()


def _present_ca() -> CertificateAuthority | None:
    """The CA in the cache; None if there is none, or it is not valid for long enough. Raises EyelevelError."""
    path = ca_certificate()
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        key = serialization.load_pem_private_key(path.with_name(KEY).read_bytes(), password=None)
    except (FileNotFoundError, ValueError):  # ValueError: a power cut has left half of a file
        return None
    except OSError as error:
        raise EyelevelError(f"{error.filename} cannot be read ({error.strerror}); {OWN_CACHE}") from None
    # The key may belong to another certificate if the CA was replaced between the two reads.
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        return None
    if certificate.not_valid_after_utc - datetime.now(UTC) < RENEWED_BEFORE_END:
        return None
    return CertificateAuthority(certificate, key)


def _new_ca(folder: Path) -> CertificateAuthority:
    """A new CA in `folder`, which replaces an existing one. Raises OSError."""
    ca = CertificateAuthority.new(NAME, LIFETIME)
    # Key and certificate are written in one step, so that they always match.
    with replacing_folder(folder, "*.pem") as new:
        write_private(new / KEY, private_pem(ca.key))
        (new / ca_certificate().name).write_bytes(certificate_pem(ca.certificate))
    return ca


def certify(
    ca: CertificateAuthority,
    servers: dict[str, tuple[str, ...]],
    folder: Path,
    forms: Mapping[str, ChainForm] | None = None,
) -> dict[str, ServerCertificate]:
    """Write into `folder` a certificate for each server address, with the hosts that the server answers for; or chains
    like `forms` (address → form).

    All share one key, made for this call: the kind of a key affects a handshake's cost, its value does not.
    """
    key = new_key()
    key_path = folder / KEY
    write_private(key_path, private_pem(key))
    certificates = {}
    for address, hosts in servers.items():
        chain = folder / f"{address}.pem"
        names = [*(x509.DNSName(host) for host in hosts), x509.IPAddress(ip_address(address))]
        usages, subject = [ExtendedKeyUsageOID.SERVER_AUTH], f"Eyelevel server {address}"
        if forms:
            issued = issue_chain(ca, key.public_key(), subject, LIFETIME, names, forms[address])
        else:
            issued = [ca.issue(subject, key.public_key(), usages, LIFETIME, names)]
        chain.write_bytes(b"".join(map(certificate_pem, issued)))
        certificates[address] = ServerCertificate(chain, key_path)
    return certificates


def chain_bytes(certificate: ServerCertificate) -> int:
    """The length of a server's chain on the wire in bytes, without TLS framing."""
    chain = x509.load_pem_x509_certificates(certificate.chain.read_bytes())
    return sum(len(one.public_bytes(serialization.Encoding.DER)) for one in chain)


@reports_errors
def main() -> None:
    """Create this machine's certificate authority unless it exists, and print its path (`make setup`)."""
    print(machine_ca_certificate())


if __name__ == "__main__":
    main()
